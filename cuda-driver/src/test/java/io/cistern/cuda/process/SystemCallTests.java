package io.cistern.cuda.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SystemCallTests {
    @Test
    void eachKnownProcessorHasItsNumbers() {
        assertThat(SystemCall.WRITE.number("amd64")).isEqualTo(1);
        assertThat(SystemCall.WRITE.number("aarch64")).isEqualTo(64);
        assertThat(SystemCall.WRITE.number("riscv64")).isEqualTo(64);
    }

    /// There 64 is `getppid`.
    @ParameterizedTest
    @ValueSource(strings = {"ppc64le", "s390x", "arm", ""})
    void noOtherProcessorGetsThem(String architecture) {
        assertThatThrownBy(() -> SystemCall.WRITE.number(architecture))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessage("the number of WRITE on " + architecture + " is unknown");
    }
}
