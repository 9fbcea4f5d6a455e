package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Numbers of bytes as people write and read them.
final class ByteSizeTests {
    @ParameterizedTest
    @CsvSource({
        "1, 1",
        "1048576, 1048576",
        "2B, 2",
        "64KiB, 65536",
        "8GiB, 8589934592",
        "0.5GiB, 536870912",
        "1EiB, 1152921504606846976"
    })
    void readsUnitsOfAThousandAndTwentyFour(String text, long bytes) {
        assertThat(ByteSize.parse(text)).isEqualTo(bytes);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "0", "-1", "8GB", "GiB", "1.5.2KiB", "two", "2EiB", "99999999999999999999"})
    void refusesTheRestAndSaysWhatWouldBeLegal(String text) {
        assertThatThrownBy(() -> ByteSize.parse(text))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("512MiB");
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
}
