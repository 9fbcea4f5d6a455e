package io.cistern.rules;

import com.tngtech.archunit.core.domain.JavaAnnotation;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.domain.JavaModifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// What is wrong with tests, so that they never run or can't fail.
///
/// @param classes those that are looked at
record TestRules(List<JavaClass> classes) {
    private static final String JUPITER = "org.junit.jupiter.";
    private static final String ARGUMENTS = JUPITER + "params.provider.";
    private static final String NESTED = JUPITER + "api.Nested";
    private static final Set<String> LIFECYCLE = Set.of(
            JUPITER + "api.BeforeEach", JUPITER + "api.AfterEach", JUPITER + "api.BeforeAll", JUPITER + "api.AfterAll");

    private static final int MAX_NAME = 59;

    /// What the build runs.
    private static final Pattern TEST_CLASS = Pattern.compile("\\w+Tests");

    /// Methods among tests that look like one and are none.
    List<String> methodsWithoutTest() {
        return methods(type -> !tests(type).isEmpty()
                        || TEST_CLASS.matcher(type.getSimpleName()).matches())
                .filter(method -> hasArgumentsOnly(method) || looksLikeATest(method))
                .map(JavaMethod::getFullName)
                .toList();
    }

    /// Tests that JUnit or the build passes over in silence.
    List<String> testsThatNeverRun() {
        return methods(_ -> true)
                .filter(TestRules::isTest)
                .filter(test -> isPassedOver(test) || isPassedOver(test.getOwner()))
                .map(JavaMethod::getFullName)
                .toList();
    }

    /// Tests that can't fail but by an exception.
    List<String> testsWithoutAssertion() {
        Assertions assertions = new Assertions();
        return methods(_ -> true)
                .filter(TestRules::isTest)
                .filter(test -> !assertions.reachedFrom(test))
                .filter(test -> checksAfterEach(test.getOwner()).noneMatch(assertions::reachedFrom))
                .map(JavaMethod::getFullName)
                .toList();
    }

    /// Tests whose names nobody reads to the end.
    List<String> testsWithLongNames() {
        return methods(_ -> true)
                .filter(TestRules::isTest)
                .map(JavaMethod::getName)
                .filter(name -> name.length() > MAX_NAME)
                .toList();
    }

    private Stream<JavaMethod> methods(Predicate<JavaClass> of) {
        return classes.stream().filter(of).flatMap(type -> type.getMethods().stream());
    }

    private static List<JavaMethod> tests(JavaClass type) {
        return type.getMethods().stream().filter(TestRules::isTest).toList();
    }

    private static boolean isTest(JavaMethod method) {
        return method.isMetaAnnotatedWith("org.junit.platform.commons.annotation.Testable");
    }

    private static boolean isPassedOver(JavaMethod test) {
        return has(test, JavaModifier.PRIVATE) || has(test, JavaModifier.STATIC);
    }

    /// An inner class without `@Nested`, or one whose name the build does not look for. JUnit's console finds suites
    /// by their tags.
    private static boolean isPassedOver(JavaClass type) {
        if (type.getModifiers().contains(JavaModifier.ABSTRACT)
                || !Assertions.isOfTests(type)
                || type.getPackageName().startsWith("io.cistern.suites")) {
            return false;
        }
        return type.isInnerClass()
                ? !type.isMetaAnnotatedWith(NESTED)
                : type.isTopLevelClass()
                        && !TEST_CLASS.matcher(type.getSimpleName()).matches();
    }

    private static boolean hasArgumentsOnly(JavaMethod method) {
        return annotations(method).anyMatch(name -> name.startsWith(ARGUMENTS)) && !isTest(method);
    }

    /// A method that only JUnit could call: nobody in its class or a subclass does, and it stands among tests.
    private static boolean looksLikeATest(JavaMethod method) {
        return !isTest(method)
                && annotations(method).allMatch(name -> name.startsWith(JUPITER) && !LIFECYCLE.contains(name))
                && method.getRawParameterTypes().isEmpty()
                && method.getRawReturnType().isEquivalentTo(void.class)
                && !has(method, JavaModifier.PRIVATE)
                && !has(method, JavaModifier.STATIC)
                && !has(method, JavaModifier.SYNTHETIC)
                && method.getAccessesToSelf().isEmpty()
                && method.getReferencesToSelf().isEmpty()
                && !overridesSomething(method);
    }

    private static Stream<String> annotations(JavaMethod method) {
        return method.getAnnotations().stream().map(JavaAnnotation::getRawType).map(JavaClass::getFullName);
    }

    private static boolean has(JavaMethod method, JavaModifier modifier) {
        return method.getModifiers().contains(modifier);
    }

    private static boolean overridesSomething(JavaMethod method) {
        JavaClass owner = method.getOwner();
        List<JavaClass> above = new ArrayList<>(owner.getAllRawSuperclasses());
        above.addAll(owner.getAllRawInterfaces());
        return above.stream()
                .anyMatch(type -> type.tryGetMethod(method.getName()).isPresent());
    }

    private static Stream<JavaMethod> checksAfterEach(JavaClass type) {
        return type.getAllMethods().stream().filter(method -> method.isAnnotatedWith(JUPITER + "api.AfterEach"));
    }
}
