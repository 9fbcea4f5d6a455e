package io.cistern.cli.common;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Numbers of bytes as people write and read them.
final class ByteSizeTests {
    @ParameterizedTest
    @CsvSource({"1, 1", "64kib, 65536", "0.5GiB, 536870912"})
    void readsWhatSpecsAndSettingsRead(String text, long bytes) {
        assertThat(ByteSize.parse(text)).isEqualTo(bytes);
    }

    @Test
    void refusesNoneTooMuchAndWhatIsNoNumber() {
        assertThatThrownBy(() -> ByteSize.parse("0")).hasMessage("'0' is not between 1 byte and 8TiB");
        assertThatThrownBy(() -> ByteSize.parse("9TiB")).hasMessage("'9TiB' is not between 1 byte and 8TiB");
        assertThatThrownBy(() -> ByteSize.parse("8GB")).hasMessageStartingWith("'8GB' could mean powers of 1000");
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0 B",
        "1023, 1023 B",
        "1024, 1.00 KiB",
        "2097152, 2.00 MiB",
        "150110011392, 140 GiB",
        "1152921504606846976, 1.00 EiB"
    })
    void writesThreeDigitsAndAUnit(long bytes, String text) {
        assertThat(ByteSize.format(bytes)).isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0 B",
        "1023, 1023 B",
        "1024, 1.00 KiB",
        "1025, 1.01 KiB",
        "10480000, 10.0 MiB",
        "3436183552, 3.21 GiB",
        "1073741823, 1024 MiB",
        "150110011393, 140 GiB"
    })
    void roundsUpWhatMustBeEnough(long bytes, String text) {
        assertThat(ByteSize.formatUp(bytes)).isEqualTo(text);
    }
}
