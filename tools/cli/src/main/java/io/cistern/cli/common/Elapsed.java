package io.cistern.cli.common;

import java.math.BigDecimal;
import java.util.Locale;

/// Formats durations for people, as the report's page does.
public final class Elapsed {
    private Elapsed() {}

    /// Formats nanoseconds with at most three digits and a unit: `3 µs`, `41 ms`, `7.89 s`, `2 min 5 s`.
    public static String format(long nanos) {
        if (nanos < 1_000) {
            return nanos + " ns";
        }
        if (nanos < 1_000_000) {
            return trimmed(nanos / 1e3) + " µs";
        }
        if (nanos < 1_000_000_000) {
            return trimmed(nanos / 1e6) + " ms";
        }
        long seconds = Math.round(nanos / 1e9);
        if (seconds < 120) {
            return trimmed(nanos / 1e9) + " s";
        }
        long minutes = Math.round(seconds / 60.0);
        return seconds < 7200
                ? seconds / 60 + " min " + seconds % 60 + " s"
                : minutes / 60 + " h " + minutes % 60 + " min";
    }

    private static String trimmed(double value) {
        String digits = String.format(Locale.ROOT, value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f", value);
        return new BigDecimal(digits).stripTrailingZeros().toPlainString();
    }
}
