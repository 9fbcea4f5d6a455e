package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

class GpuTestsTests {
    private final StringWriter text = new StringWriter();
    private final GpuTests tests = new GpuTests(new PrintWriter(text, true));

    static class Passing {
        @Test
        void passes() {}
    }

    static class Failing {
        @Test
        void passes() {}

        @Test
        void fails() {
            throw new AssertionError("failed on purpose");
        }
    }

    static class Empty {}

    @ParameterizedClass
    @MethodSource("nothing")
    record NobodyEnrolled(String spec) {
        static java.util.List<String> nothing() {
            return java.util.List.of();
        }

        @Test
        void passes() {}
    }

    @Test
    void allPassedIsCodeZero() {
        assertThat(tests.execute(Passing.class)).isZero();
        assertThat(text.toString()).contains("1 passed, 0 failed");
    }

    @Test
    void aFailureIsCodeOneWithItsStackTrace() {
        assertThat(tests.execute(Passing.class, Failing.class)).isEqualTo(1);
        assertThat(text.toString())
                .contains("FAILED: ", "fails()", "failed on purpose", "at io.cistern.suites")
                .contains("2 passed, 1 failed");
    }

    @Test
    void nothingRunIsCodeOne() {
        assertThat(tests.execute(Empty.class)).isEqualTo(1);
        assertThat(text.toString()).contains("0 passed, 0 failed");
    }

    @Test
    void anEmptyEnrolmentIsAFailure() {
        assertThat(tests.execute(Passing.class, NobodyEnrolled.class)).isEqualTo(1);
        assertThat(text.toString()).contains("1 passed, 1 failed");
    }

    @Test
    void theListNamesAllocatorsAndTests() {
        assertThat(tests.run("--driver", "simulated", "--list")).isZero();
        assertThat(text.toString()).contains("allocator: direct", "aNewStreamIsIdle()");
    }

    @Test
    void aSuiteIsChosenByItsName() {
        assertThat(tests.run("--driver", "simulated", "--list", "--suite", "ChosenScopedPools"))
                .isZero();
        assertThat(text.toString()).doesNotContain("aNewStreamIsIdle()");
        assertThat(tests.run("--driver", "simulated", "--list", "--suite", "ChosenDriverContract"))
                .isZero();
        assertThat(text.toString()).contains("aNewStreamIsIdle()");
    }

    @Test
    void wrongOptionsAreCodeTwo() {
        assertThat(tests.run("--driver", "none")).isEqualTo(2);
        assertThat(tests.run("--driver")).isEqualTo(2);
        assertThat(tests.run("--what")).isEqualTo(2);
        assertThat(tests.run("--suite", "Everything")).isEqualTo(2);
        assertThat(text.toString()).contains("usage:");
    }
}
