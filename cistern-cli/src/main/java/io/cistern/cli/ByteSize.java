package io.cistern.cli;

import io.cistern.cuda.settings.ByteSizes;
import java.util.Locale;

/// Numbers of bytes that are not none, and how tables write them.
final class ByteSize {
    private static final String UNITS = "KMGTPE";

    private ByteSize() {}

    /// Reads a number of bytes, at least 1, as specs and settings do.
    ///
    /// @throws IllegalArgumentException saying what would be legal
    static long parse(String text) {
        long bytes = ByteSizes.parse(text);
        if (bytes == 0) {
            throw new IllegalArgumentException("'" + text + "' is no memory; at least 1 byte is wanted");
        }
        return bytes;
    }

    /// Three to four digits and a unit: `640 B`, `2.00 MiB`, `12.3 GiB`.
    static String format(long bytes) {
        if (Math.abs(bytes) < 1024) {
            return bytes + " B";
        }
        int power = (63 - Long.numberOfLeadingZeros(Math.abs(bytes))) / 10;
        double value = (double) bytes / (1L << (10 * power));
        String digits = value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f";
        return String.format(Locale.ROOT, digits + " %siB", value, UNITS.charAt(power - 1));
    }
}
