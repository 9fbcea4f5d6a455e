package io.cistern.observability.jfr;

import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The setting for the least duration of an allocation that is written, such as `1 ms` or `200 us`.
final class SlowerThan extends LeastSetting {
    private static final Pattern FORM = Pattern.compile("(\\d{1,9})\\s*(ns|us|ms|s|m)");
    private static final Map<String, TimeUnit> UNITS = Map.of(
            "ns", TimeUnit.NANOSECONDS,
            "us", TimeUnit.MICROSECONDS,
            "ms", TimeUnit.MILLISECONDS,
            "s", TimeUnit.SECONDS,
            "m", TimeUnit.MINUTES);

    private static volatile long nanos = 1_000_000;

    SlowerThan() {
        super("1 ms");
    }

    /// Returns the threshold in force, in nanoseconds.
    static long nanos() {
        return nanos;
    }

    @Override
    OptionalLong parse(String text) {
        Matcher form = FORM.matcher(text.strip().toLowerCase(Locale.ROOT));
        return form.matches()
                ? OptionalLong.of(
                        UNITS.getOrDefault(form.group(2), TimeUnit.NANOSECONDS).toNanos(Long.parseLong(form.group(1))))
                : OptionalLong.empty();
    }

    @Override
    void apply(long quantity) {
        nanos = quantity;
    }
}
