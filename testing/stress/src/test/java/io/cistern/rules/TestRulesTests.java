package io.cistern.rules;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.provider.ValueSource;

/// Rules for the tests of all modules that this build has compiled so far: every method that looks like a test is one,
/// every test runs, and every test can fail.
class TestRulesTests {
    private static final List<String> FOLDERS = List.of("target/test-classes", "target/classes");

    private static final TestRules ALL = new TestRules(new ClassFileImporter()
            .importPaths(compiledFolders()).stream()
                    .filter(type -> !isFixture(type))
                    .toList());

    private static List<Path> compiledFolders() {
        try (Stream<Path> modules =
                Files.find(Path.of("../.."), 2, (folder, _) -> Files.exists(folder.resolve("pom.xml")))) {
            return modules.flatMap(module -> FOLDERS.stream().map(module::resolve))
                    .filter(Files::isDirectory)
                    .toList();
        } catch (IOException unreadable) {
            throw new AssertionError(unreadable);
        }
    }

    /// A class that a test runs itself, to see what becomes of it, or one within it.
    private static boolean isFixture(JavaClass type) {
        return type.isNestedClass()
                && (!type.isInnerClass()
                        || type.getEnclosingClass()
                                .filter(TestRulesTests::isFixture)
                                .isPresent());
    }

    @Test
    void aMethodAmongTestsIsATest() {
        assertThat(ALL.classes()).isNotEmpty();
        assertThat(ALL.methodsWithoutTest())
                .as("methods that nobody calls and that have no @Test")
                .isEmpty();
    }

    @Test
    void everyTestRuns() {
        assertThat(ALL.testsThatNeverRun())
                .as("private or static, in an inner class without @Nested, or in a class not named …Tests")
                .isEmpty();
    }

    @Test
    void everyTestAsserts() {
        assertThat(ALL.testsWithoutAssertion())
                .as("tests that assert nothing, so that they can't fail but by an exception")
                .isEmpty();
    }

    @Test
    void namesAreShort() {
        assertThat(ALL.testsWithLongNames())
                .as("tests with names of sixty letters or more")
                .isEmpty();
    }

    static class Mistakes {
        @Test
        void sound() {
            assertThat(helper()).isTrue();
        }

        @Test
        void assertsNothing() {
            helper();
        }

        @Test
        void onlyNamesASubject() {
            assertThat(helper()).as("a helper");
        }

        @Test
        void hasANameThatGoesOnAndOnUntilNobodyRemembersAnyMoreHowItHadBegun() {
            assertThat(helper()).isTrue();
        }

        @Test
        private void isPrivate() {
            assertThat(helper()).isTrue();
        }

        void hasNoAnnotation() {
            assertThat(helper()).isTrue();
        }

        @Timeout(1)
        void hasATimeoutAlone() {
            assertThat(helper()).isTrue();
        }

        @ValueSource(ints = {1, 2})
        void hasArgumentsAlone(int argument) {
            assertThat(argument).isPositive();
        }

        boolean helper() {
            return true;
        }

        class WithoutNested {
            @Test
            void neverRuns() {
                assertThat(helper()).isTrue();
            }
        }
    }

    static class ForgottenTests {
        void hasNoTestAtAll() {
            assertThat(ALL).isNotNull();
        }
    }

    @Test
    void theRulesFindMistakes() {
        JavaClasses imported = new ClassFileImporter()
                .importClasses(Mistakes.class, Mistakes.WithoutNested.class, ForgottenTests.class);
        TestRules mistakes = new TestRules(List.copyOf(imported));

        assertThat(mistakes.methodsWithoutTest())
                .map(TestRulesTests::name)
                .containsExactlyInAnyOrder(
                        "hasNoAnnotation", "hasATimeoutAlone", "hasArgumentsAlone", "hasNoTestAtAll");
        assertThat(mistakes.testsThatNeverRun())
                .map(TestRulesTests::name)
                .containsExactlyInAnyOrder("isPrivate", "neverRuns");
        assertThat(mistakes.testsWithLongNames())
                .containsExactly("hasANameThatGoesOnAndOnUntilNobodyRemembersAnyMoreHowItHadBegun");
        assertThat(mistakes.testsWithoutAssertion())
                .map(TestRulesTests::name)
                .containsExactlyInAnyOrder("assertsNothing", "onlyNamesASubject");
    }

    private static String name(String method) {
        return method.replaceAll(".*\\.(\\w+)\\(.*", "$1");
    }
}
