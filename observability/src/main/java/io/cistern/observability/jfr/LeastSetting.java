package io.cistern.observability.jfr;

import io.cistern.cuda.settings.ByteSizes;
import java.util.Comparator;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import jdk.jfr.SettingControl;

/// A setting that is a quantity. If several recordings set it, the smallest value applies; a text that does
/// not parse is ignored.
abstract class LeastSetting extends SettingControl {
    private final String usual;
    private String value;

    LeastSetting(String usual) {
        this.usual = usual;
        value = usual;
    }

    abstract OptionalLong parse(String text);

    abstract void apply(long quantity);

    @Override
    public String combine(Set<String> values) {
        return values.stream()
                .filter(text -> parse(text).isPresent())
                .min(Comparator.comparingLong(text -> parse(text).orElseThrow()))
                .orElse(usual);
    }

    @Override
    public void setValue(String text) {
        parse(text).ifPresent(quantity -> {
            apply(quantity);
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

    /// The setting for the bytes between two samples of a thread, such as `64MiB`.
    static final class SampleInterval extends LeastSetting {
        private static volatile long bytes = 64 << 20;

        SampleInterval() {
            super("64MiB");
        }

        static long bytes() {
            return bytes;
        }

        @Override
        OptionalLong parse(String text) {
            try {
                return OptionalLong.of(ByteSizes.parse(text));
            } catch (IllegalArgumentException noNumber) {
                return OptionalLong.empty();
            }
        }

        @Override
        void apply(long quantity) {
            bytes = quantity;
        }
    }

    /// The setting for the minimum duration of an allocation that is recorded, such as `1 ms` or `200 us`.
    static final class SlowerThan extends LeastSetting {
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

        static long nanos() {
            return nanos;
        }

        @Override
        OptionalLong parse(String text) {
            Matcher form = FORM.matcher(text.strip().toLowerCase(Locale.ROOT));
            return form.matches()
                    ? OptionalLong.of(UNITS.getOrDefault(form.group(2), TimeUnit.NANOSECONDS)
                            .toNanos(Long.parseLong(form.group(1))))
                    : OptionalLong.empty();
        }

        @Override
        void apply(long quantity) {
            nanos = quantity;
        }
    }
}
