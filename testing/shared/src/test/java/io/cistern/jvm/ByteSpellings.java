package io.cistern.jvm;

import java.util.List;
import java.util.stream.Stream;

/// Spellings of one number of bytes that every setting and every option of bytes takes, and texts that each refuses.
public final class ByteSpellings {
    /// What all spellings mean: 2 MiB.
    public static final long BYTES = 2L << 20;

    /// The memory of the device that the shares are of.
    public static final long DEVICE_BYTES = 4L << 30;

    /// Numbers that mean the same on every device, and without one.
    public static final List<String> NUMBERS = List.of(
            "2097152",
            "2097152B",
            "2048k",
            "2048K",
            "2048KiB",
            "2m",
            "2M",
            "2MiB",
            "2mib",
            "2 MiB",
            "0.001953125g",
            "0.001953125GiB",
            ".001953125GiB");

    /// Shares of the device.
    public static final List<String> SHARES = List.of("0.00048828125", ".00048828125", "0.048828125%");

    /// Texts that are no number of bytes, and no share.
    public static final List<String> WRONG = List.of(
            "much",
            "-1",
            "+1",
            "-2MiB",
            "1e9",
            "2MB",
            "2gb",
            "1.5",
            "101%",
            "-50%",
            "0.5B",
            "1PiB",
            "2mm",
            "m",
            "%",
            "NaN",
            "2 apples",
            "9223372036854775808",
            "8388608t");

    private ByteSpellings() {}

    /// Returns numbers and shares.
    public static List<String> all() {
        return Stream.of(NUMBERS, SHARES).flatMap(List::stream).toList();
    }
}
