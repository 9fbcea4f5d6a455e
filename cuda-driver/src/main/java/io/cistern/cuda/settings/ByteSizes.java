package io.cistern.cuda.settings;

import java.math.BigDecimal;
import java.util.Locale;
import java.util.function.LongSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Reads and prints numbers of bytes in a human-readable form. All settings and options use this one syntax:
///
/// | text | meaning |
/// |---|---|
/// | `1048576`, `1048576B` | bytes |
/// | `64k`, `512m`, `8g`, `1t` | powers of 1024, as for `-Xmx` and in Spark |
/// | `64KiB`, `512MiB`, `0.5GiB`, `1TiB` | the same |
/// | `0.5`, `50%` | a share of the device's memory; without `%`, write a decimal point |
///
/// Letters may have any case. Fractions of a byte are rounded down. `KB`, `MB` and `GB` are refused as
/// ambiguous: 80 GB is 80·10⁹ bytes on a data sheet, but many people mean 80·2³⁰ bytes, which is 7 % more.
public final class ByteSizes {
    /// The number of digits is bounded, so that a hostile text costs nothing; 2^63 has 19.
    private static final Pattern FORM =
            Pattern.compile("(\\d{1,19}(?:\\.\\d{1,19})?|\\.\\d{1,19})\\s?([a-z]*|%)", Pattern.CASE_INSENSITIVE);

    private static final String UNITS = "kmgt";
    private static final String LEGAL = "write it like 1048576, 64k, 8g or 512MiB";
    private static final String LEGAL_SHARE = ", or as a share of the device like 0.5 or 50%";

    private ByteSizes() {}

    /// Reads a number of bytes where no device is known.
    ///
    /// @return bytes, at least 0
    /// @throws IllegalArgumentException if the text is not a number of bytes, is a share of a device, is negative,
    ///     or exceeds 2^63 − 1; the message quotes the text and says what is legal
    public static long parse(String text) {
        if (isShare(text)) {
            throw bad(text, "is a share of a device, but this value must be a number of bytes", LEGAL);
        }
        return parse(text, LEGAL, () -> 0);
    }

    /// Reads a number of bytes, or a share of a device's memory.
    ///
    /// @param deviceBytes returns the device's memory, in bytes; called only for a share
    /// @return bytes, at least 0
    /// @throws IllegalArgumentException if the text is neither, is negative, or exceeds the device or 2^63 − 1;
    ///     the message quotes the text and says what is legal
    public static long parse(String text, LongSupplier deviceBytes) {
        return parse(text, LEGAL + LEGAL_SHARE, deviceBytes);
    }

    private static long parse(String text, String legal, LongSupplier deviceBytes) {
        Matcher form = FORM.matcher(text.strip());
        if (!form.matches()) {
            throw bad(text, "is not a number of bytes", legal);
        }
        BigDecimal amount = new BigDecimal(form.group(1));
        if (isShare(form)) {
            return share(form.group(2).equals("%") ? amount.movePointLeft(2) : amount, text, legal, deviceBytes);
        }
        long unit = unit(form.group(2).toLowerCase(Locale.ROOT), text, legal);
        if (unit == 1 && form.group(1).contains(".")) {
            throw bad(text, "is a fraction of a byte", legal);
        }
        BigDecimal bytes = amount.multiply(BigDecimal.valueOf(unit));
        if (bytes.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0) {
            throw bad(text, "is more than 2^63 - 1 bytes", legal);
        }
        return bytes.longValue();
    }

    private static long share(BigDecimal share, String text, String legal, LongSupplier deviceBytes) {
        if (share.compareTo(BigDecimal.ONE) > 0) {
            throw bad(text, "is more than the whole device", legal);
        }
        return share.multiply(BigDecimal.valueOf(deviceBytes.getAsLong())).longValue();
    }

    /// Returns whether a text has the form of a share of a device, and not of a number of bytes.
    public static boolean isShare(String text) {
        Matcher form = FORM.matcher(text.strip());
        return form.matches() && isShare(form);
    }

    private static boolean isShare(Matcher form) {
        return form.group(2).equals("%")
                || (form.group(2).isEmpty() && form.group(1).contains("."));
    }

    /// Returns the shortest exact text, which [#parse] reads back: `64KiB`, `1536MiB`, `1000`.
    public static String print(long bytes) {
        int power = bytes == 0 ? 0 : Math.min(Long.numberOfTrailingZeros(bytes) / 10, UNITS.length());
        String unit = power == 0 ? "" : Character.toUpperCase(UNITS.charAt(power - 1)) + "iB";
        return (bytes >> (10 * power)) + unit;
    }

    /// Formats bytes with three to four digits and a unit: `640 B`, `2.00 MiB`, `12.3 GiB`.
    public static String format(long bytes) {
        if (Math.abs(bytes) < 1024) {
            return bytes + " B";
        }
        int power = (63 - Long.numberOfLeadingZeros(Math.abs(bytes))) / 10;
        double value = (double) bytes / (1L << (10 * power));
        double size = Math.abs(value);
        String form = size < 9.995 ? "%.2f %ciB" : size < 99.95 ? "%.1f %ciB" : "%.0f %ciB";
        return String.format(Locale.ROOT, form, value, "KMGTPE".charAt(power - 1));
    }

    /// Returns the exact number of bytes as text, followed by a rounded one with a unit if the number is large:
    /// `4096 bytes`, `3145728 bytes (3.00 MiB)`.
    public static String exact(long bytes) {
        return count(bytes) + (Math.abs(bytes) < 1L << 20 ? "" : " (" + format(bytes) + ")");
    }

    /// Returns the number of bytes as text: `1 byte`, `4096 bytes`.
    public static String count(long bytes) {
        return bytes + (bytes == 1 ? " byte" : " bytes");
    }

    private static long unit(String unit, String text, String legal) {
        if (unit.isEmpty() || unit.equals("b")) {
            return 1;
        }
        int power = UNITS.indexOf(unit.charAt(0)) + 1;
        if (power > 0 && (unit.length() == 1 || unit.substring(1).equals("ib"))) {
            return 1L << (10 * power);
        }
        if (power > 0 && unit.substring(1).equals("b")) {
            String amount = text.strip().substring(0, text.strip().length() - unit.length());
            char letter = Character.toUpperCase(unit.charAt(0));
            throw bad(text, "could mean powers of 1000 or of 1024", "write " + amount.strip() + letter + "iB");
        }
        throw bad(text, "is not a number of bytes", legal);
    }

    private static IllegalArgumentException bad(String text, String what, String legal) {
        return new IllegalArgumentException("'" + text + "' " + what + "; " + legal);
    }
}
