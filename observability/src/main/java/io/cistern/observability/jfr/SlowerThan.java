package io.cistern.observability.jfr;

import java.util.Comparator;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import jdk.jfr.SettingControl;

/// The setting for the least duration of an allocation that is written, such as `1 ms` or `200 us`. If several
/// recordings set it, the least value applies; a text that is no duration is ignored.
final class SlowerThan extends SettingControl {
    private static final long DEFAULT_NANOS = 1_000_000;
    private static final Pattern FORM = Pattern.compile("(\\d{1,9})\\s*(ns|us|ms|s|m)");
    private static final Map<String, Long> UNITS =
            Map.of("ns", 1L, "us", 1_000L, "ms", 1_000_000L, "s", 1_000_000_000L, "m", 60_000_000_000L);

    private static volatile long nanos = DEFAULT_NANOS;
    private String value = "1 ms";

    /// Returns the threshold in force, in nanoseconds.
    static long nanos() {
        return nanos;
    }

    static OptionalLong parse(String text) {
        Matcher form = FORM.matcher(text.strip().toLowerCase(Locale.ROOT));
        return form.matches()
                ? OptionalLong.of(Long.parseLong(form.group(1)) * UNITS.getOrDefault(form.group(2), 1L))
                : OptionalLong.empty();
    }

    @Override
    public String combine(Set<String> values) {
        return values.stream()
                .filter(text -> parse(text).isPresent())
                .min(Comparator.comparingLong(text -> parse(text).orElse(DEFAULT_NANOS)))
                .orElse("1 ms");
    }

    @Override
    public void setValue(String text) {
        parse(text).ifPresent(least -> {
            nanos = least;
            value = text;
        });
    }

    @Override
    public String getValue() {
        return value;
    }

    boolean isKnown() {
        return parse(value).isPresent();
    }
}
