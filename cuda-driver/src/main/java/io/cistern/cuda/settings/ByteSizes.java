package io.cistern.cuda.settings;

import java.math.BigDecimal;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Reads and prints numbers of bytes as people write them: `1048576`, `64KiB`, `2MiB`, `0.5GiB`, `1TiB`.
///
/// Units are binary, in any letter case. A fraction needs a unit and is rounded down to whole bytes. `KB`, `MB`
/// and `GB` are refused, because their meaning would be a guess: 80 GB is 80·10⁹ on a data sheet and 80·2³⁰ in
/// most people's heads, 7 % apart.
public final class ByteSizes {
    /// The number of digits is bounded, so that a hostile text costs nothing; 2^63 has 19.
    private static final Pattern FORM = Pattern.compile("(\\d{1,19})(\\.\\d{1,19})?\\s?([a-z]*)");
    private static final String UNITS = "kmgt";
    private static final String LEGAL = "write it like 1048576, 64KiB, 2MiB, 0.5GiB or 1TiB";

    private ByteSizes() {}

    /// Reads a number of bytes.
    ///
    /// @return bytes, at least 0
    /// @throws IllegalArgumentException if the text is no number of bytes, is negative, or exceeds 2^63 − 1;
    ///     the message quotes the text and says what is legal
    public static long parse(String text) {
        Matcher form = FORM.matcher(text.strip().toLowerCase(Locale.ROOT));
        if (!form.matches()) {
            throw bad(text, "is not a number of bytes");
        }
        long unit = unit(form.group(3), text);
        if (form.group(2) != null && unit == 1) {
            throw bad(text, "is a fraction of a byte");
        }
        BigDecimal amount = new BigDecimal(form.group(2) == null ? form.group(1) : form.group(1) + form.group(2));
        BigDecimal bytes = amount.multiply(BigDecimal.valueOf(unit));
        if (bytes.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0) {
            throw bad(text, "is more than 2^63 - 1 bytes");
        }
        return bytes.longValue();
    }

    /// Returns the shortest exact text, which [#parse] reads back: `64KiB`, `1536MiB`, `1000`.
    public static String print(long bytes) {
        int power = bytes == 0 ? 0 : Math.min(Long.numberOfTrailingZeros(bytes) / 10, UNITS.length());
        String unit = power == 0 ? "" : Character.toUpperCase(UNITS.charAt(power - 1)) + "iB";
        return (bytes >> (10 * power)) + unit;
    }

    private static long unit(String unit, String text) {
        if (unit.isEmpty() || unit.equals("b")) {
            return 1;
        }
        int power = UNITS.indexOf(unit.charAt(0)) + 1;
        if (power > 0 && unit.substring(1).equals("ib")) {
            return 1L << (10 * power);
        }
        if (power > 0 && (unit.length() == 1 || unit.substring(1).equals("b"))) {
            throw bad(text, "may mean powers of 1000 or of 1024");
        }
        throw bad(text, "is not a number of bytes");
    }

    private static IllegalArgumentException bad(String text, String what) {
        return new IllegalArgumentException("'" + text + "' " + what + "; " + LEGAL);
    }
}
