package io.cistern.cuda.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ByteSizesTests {
    private static final String LEGAL = "; write it like 1048576, 64k, 8g or 512MiB";

    @ParameterizedTest
    @CsvSource({
        "0,                   0",
        "1048576,             1048576",
        "12B,                 12",
        "64KiB,               65536",
        "64kib,               65536",
        "2MiB,                2097152",
        "'2 MiB',             2097152",
        "' 2MiB ',            2097152",
        "0.5GiB,              536870912",
        "1.5KiB,              1536",
        "0.3KiB,              307",
        ".5GiB,               536870912",
        "8g,                  8589934592",
        "512M,                536870912",
        "64k,                 65536",
        "1t,                  1099511627776",
        "1TiB,                1099511627776",
        "9223372036854775807, 9223372036854775807",
        "8388607TiB,          9223370937343148032"
    })
    void readsNumbersWithAndWithoutUnit(String text, long bytes) {
        assertThat(ByteSizes.parse(text)).isEqualTo(bytes);
    }

    @ParameterizedTest
    @CsvSource({
        "'',                    is not a number of bytes",
        "MiB,                   is not a number of bytes",
        "-1,                    is not a number of bytes",
        "-2MiB,                 is not a number of bytes",
        "+1,                    is not a number of bytes",
        "1e9,                   is not a number of bytes",
        "12 apples,             is not a number of bytes",
        "1PiB,                  is not a number of bytes",
        "1_000,                 is not a number of bytes",
        "1,                     is not a number of bytes",
        "0.5,                   'is a share of a device, but this value must be a number of bytes'",
        "50%,                   'is a share of a device, but this value must be a number of bytes'",
        "1.5B,                  is a fraction of a byte",
        "9223372036854775808,   is more than 2^63 - 1 bytes",
        "8388608TiB,            is more than 2^63 - 1 bytes",
        "9999999999999999999TiB,is more than 2^63 - 1 bytes",
        "10000000000000000000000, is not a number of bytes"
    })
    void refusesWhatIsNoneWithTheReason(String text, String reason) {
        String given = text.equals("1") ? "\u0661" : text; // a digit, but not one of ours
        assertThatThrownBy(() -> ByteSizes.parse(given))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("'" + given + "' " + reason + LEGAL);
    }

    @ParameterizedTest
    @CsvSource({"0, 0 bytes", "1, 1 byte", "4096, 4096 bytes", "3145728, 3145728 bytes (3.00 MiB)"})
    void anExactNumberIsReadable(long bytes, String text) {
        assertThat(ByteSizes.exact(bytes)).isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({"64KB, 64KiB", "80GB, 80GiB", "8gb, 8GiB", "1.5 Tb, 1.5TiB"})
    void ofAUnitWithTwoMeaningsTheOtherSpellingIsProposed(String given, String proposed) {
        assertThatThrownBy(() -> ByteSizes.parse(given))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("'" + given + "' could mean powers of 1000 or of 1024; write " + proposed);
    }

    @ParameterizedTest
    @CsvSource({
        "0.5, 500",
        "50%, 500",
        ".25, 250",
        "1.0, 1000",
        "100%, 1000",
        "0.0, 0",
        "12.34%, 123",
        "1, 1",
        "1k, 1024"
    })
    void readsSharesOfADevice(String text, long bytes) {
        assertThat(ByteSizes.parse(text, () -> 1000)).isEqualTo(bytes);
    }

    @ParameterizedTest
    @CsvSource({
        "1.5, is more than the whole device",
        "101%, is more than the whole device",
        "-50%, is not a number of bytes"
    })
    void refusesWhatIsNoShare(String text, String reason) {
        assertThatThrownBy(() -> ByteSizes.parse(text, () -> 1000))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("'" + text + "' " + reason + LEGAL + ", or as a share of the device like 0.5 or 50%");
    }

    @ParameterizedTest
    @CsvSource({
        "0,                   0",
        "1000,                1000",
        "1024,                1KiB",
        "1610612736,          1536MiB",
        "150323855360,        140GiB",
        "1125899906842624,    1024TiB",
        "9223372036854775807, 9223372036854775807"
    })
    void printsTheShortestExactText(long bytes, String text) {
        assertThat(ByteSizes.print(bytes)).isEqualTo(text);
    }

    @Test
    void readsBackWhatItPrints() {
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        RandomGenerator random = RandomGeneratorFactory.getDefault().create(seed);
        for (int round = 0; round < 10_000; round++) {
            long bytes = random.nextLong() >>> 1 + random.nextInt(62) << random.nextInt(40) & Long.MAX_VALUE;
            assertThat(ByteSizes.parse(ByteSizes.print(bytes)))
                    .as("seed %d", seed)
                    .isEqualTo(bytes);
        }
    }
}
