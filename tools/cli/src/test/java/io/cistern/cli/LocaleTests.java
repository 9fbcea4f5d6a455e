package io.cistern.cli;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.lang.syntax.elements.ClassesShouldConjunction;
import java.io.PrintStream;
import java.io.PrintWriter;
import org.junit.jupiter.api.Test;

/// Texts are in English, and programs read some of them: digits and letters are the same in every locale.
final class LocaleTests {
    private static final JavaClasses CLASSES = MainClasses.ALL;

    @Test
    void noTextTakesItsDigitsFromTheDefaultLocale() {
        ClassesShouldConjunction rule = noClasses()
                .that()
                .resideOutsideOfPackage("io.cistern.testkit") // only failures of tests
                .should()
                .callMethod(String.class, "formatted", Object[].class)
                .orShould()
                .callMethod(String.class, "format", String.class, Object[].class);
        for (Class<?> to : new Class<?>[] {PrintStream.class, PrintWriter.class}) {
            rule = rule.orShould()
                    .callMethod(to, "printf", String.class, Object[].class)
                    .orShould()
                    .callMethod(to, "format", String.class, Object[].class);
        }
        rule.check(CLASSES);
    }

    @Test
    void noTextTakesItsLettersFromTheDefaultLocale() {
        noClasses()
                .should()
                .callMethod(String.class, "toLowerCase")
                .orShould()
                .callMethod(String.class, "toUpperCase")
                .check(CLASSES);
    }
}
