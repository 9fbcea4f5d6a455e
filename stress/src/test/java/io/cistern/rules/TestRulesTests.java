package io.cistern.rules;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// Rules for the tests of all modules that this build has compiled so far: every method that looks like a test is one,
/// and every test can fail.
class TestRulesTests {
    private static final List<String> FOLDERS = List.of("target/test-classes", "target/classes");

    private static final JavaClasses CLASSES = new ClassFileImporter().importPaths(compiledFolders());

    private static List<Path> compiledFolders() {
        List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> modules = Files.newDirectoryStream(Path.of(".."), Files::isDirectory)) {
            for (Path module : modules) {
                FOLDERS.stream().map(module::resolve).filter(Files::isDirectory).forEach(found::add);
            }
        } catch (IOException unreadable) {
            throw new AssertionError(unreadable);
        }
        return found;
    }

    private static List<JavaMethod> tests() {
        return CLASSES.stream()
                .flatMap(type -> type.getMethods().stream())
                .filter(TestRulesTests::isTest)
                .filter(method -> !isFixture(method.getOwner()))
                .toList();
    }

    /// A class that a test runs itself, to see what becomes of it.
    private static boolean isFixture(JavaClass type) {
        return type.isNestedClass() && !type.isInnerClass();
    }

    private static boolean isTest(JavaMethod method) {
        return method.isMetaAnnotatedWith("org.junit.platform.commons.annotation.Testable");
    }

    /// A method that only JUnit could call: nobody in its class or a subclass does, and it stands among tests.
    private static boolean looksLikeATest(JavaMethod method) {
        return method.getAnnotations().isEmpty()
                && method.getRawParameterTypes().isEmpty()
                && method.getRawReturnType().isEquivalentTo(void.class)
                && !method.getModifiers().contains(JavaModifier.PRIVATE)
                && !method.getModifiers().contains(JavaModifier.STATIC)
                && !method.getModifiers().contains(JavaModifier.SYNTHETIC)
                && method.getAccessesToSelf().isEmpty()
                && method.getReferencesToSelf().isEmpty()
                && !overridesSomething(method);
    }

    private static boolean overridesSomething(JavaMethod method) {
        JavaClass owner = method.getOwner();
        List<JavaClass> above = new ArrayList<>(owner.getAllRawSuperclasses());
        above.addAll(owner.getAllRawInterfaces());
        return above.stream()
                .anyMatch(type -> type.tryGetMethod(method.getName()).isPresent());
    }

    private static Stream<JavaMethod> checksAfterEach(JavaClass type) {
        return type.getAllMethods().stream()
                .filter(method -> method.isAnnotatedWith("org.junit.jupiter.api.AfterEach"));
    }

    @Test
    void aMethodAmongTestsIsATest() {
        assertThat(tests()).isNotEmpty();
        assertThat(tests().stream()
                        .map(JavaMethod::getOwner)
                        .distinct()
                        .flatMap(type -> type.getMethods().stream())
                        .filter(TestRulesTests::looksLikeATest)
                        .map(JavaMethod::getFullName))
                .as("methods that nobody calls and that have no @Test")
                .isEmpty();
    }

    @Test
    void everyTestAsserts() {
        Assertions assertions = new Assertions();
        assertThat(tests().stream()
                        .filter(test -> !assertions.reachedFrom(test))
                        .filter(test -> checksAfterEach(test.getOwner()).noneMatch(assertions::reachedFrom))
                        .map(JavaMethod::getFullName))
                .as("tests that assert nothing, so that they can't fail but by an exception")
                .isEmpty();
    }
}
