package io.cistern.cli.common;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ElapsedTests {
    @ParameterizedTest
    @CsvSource({
        "640, 640 ns",
        "3000, 3 µs",
        "1234567, 1.23 ms",
        "100000000, 100 ms",
        "7894000000, 7.89 s",
        "119000000000, 119 s",
        "125000000000, 2 min 5 s",
        "179900000000, 3 min 0 s",
        "7500000000000, 2 h 5 min"
    })
    void writesAtMostThreeDigitsAndAUnit(long nanos, String text) {
        assertThat(Elapsed.format(nanos)).isEqualTo(text);
    }
}
