package io.cistern.cli;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.assignableTo;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.simpleName;
import static com.tngtech.archunit.lang.conditions.ArchPredicates.are;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import io.cistern.cuda.CisternException;
import org.junit.jupiter.api.Test;

/// One catch clause is enough for all that Cistern throws on its own account.
final class ExceptionTypesTests {
    private static final JavaClasses CLASSES = MainClasses.ALL;

    /// The misuse of a call is a standard exception of Java, also where it has a subclass.
    private static final DescribedPredicate<JavaClass> MISUSE = assignableTo(IllegalArgumentException.class);

    @Test
    void everyUncheckedExceptionHasOneBase() {
        classes()
                .that(are(assignableTo(RuntimeException.class)))
                .and()
                .arePublic()
                .and(DescribedPredicate.not(MISUSE))
                .and()
                .resideOutsideOfPackage("..internal..") // it reaches no program
                .should()
                .beAssignableTo(CisternException.class)
                .check(CLASSES);
    }

    @Test
    void theRuleSeesTheExceptionsOfEveryModule() {
        for (String name : new String[] {"CudaException", "NvrtcException", "NcclException", "RetryOom"}) {
            assertThat(CLASSES.stream().filter(simpleName(name))).as(name).hasSize(1);
        }
    }
}
