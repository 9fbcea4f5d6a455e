package io.cistern.cli;

import java.math.BigDecimal;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Numbers of bytes as people write and read them: `1048576`, `2MiB`, `0.5GiB`.
final class ByteSize {
    private static final String UNITS = "KMGTPE";
    private static final Pattern FORM = Pattern.compile("(\\d{1,19}(?:\\.\\d{1,9})?)\\s*(?:B|([KMGTPE])iB)?");

    private ByteSize() {}

    /// Reads a number of bytes, at least 1.
    ///
    /// @throws IllegalArgumentException saying what would be legal
    static long parse(String text) {
        Matcher form = FORM.matcher(text.trim());
        if (!form.matches()) {
            throw illegal(text);
        }
        BigDecimal unit = form.group(2) == null
                ? BigDecimal.ONE
                : BigDecimal.valueOf(unit(form.group(2).charAt(0)));
        BigDecimal bytes = new BigDecimal(form.group(1)).multiply(unit);
        if (bytes.compareTo(BigDecimal.ONE) < 0 || bytes.compareTo(BigDecimal.valueOf(1L << 60)) > 0) {
            throw illegal(text);
        }
        return bytes.longValue();
    }

    /// Three to four digits and a unit: `640 B`, `2.00 MiB`, `12.3 GiB`.
    static String format(long bytes) {
        if (Math.abs(bytes) < 1024) {
            return bytes + " B";
        }
        int power = Math.min((63 - Long.numberOfLeadingZeros(Math.abs(bytes))) / 10, UNITS.length());
        char unit = UNITS.charAt(power - 1);
        double value = (double) bytes / unit(unit);
        String digits = value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f";
        return String.format(Locale.ROOT, digits + " %siB", value, unit);
    }

    private static long unit(char letter) {
        return 1L << (10 * (UNITS.indexOf(letter) + 1));
    }

    private static IllegalArgumentException illegal(String text) {
        return new IllegalArgumentException(
                "not a number of bytes: " + text + " (write for example 1048576, 512MiB, 0.5GiB; at most 1EiB)");
    }
}
