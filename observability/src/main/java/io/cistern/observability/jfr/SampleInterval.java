package io.cistern.observability.jfr;

import io.cistern.cuda.settings.ByteSizes;
import java.util.Comparator;
import java.util.OptionalLong;
import java.util.Set;
import jdk.jfr.SettingControl;

/// The setting for the bytes between two samples of a thread, such as `64MiB`. If several recordings set it,
/// the least value applies; a text that is no number of bytes with a unit is ignored.
final class SampleInterval extends SettingControl {
    private static final String DEFAULT = "64MiB";
    private static final long DEFAULT_BYTES = 64 << 20;

    private static volatile long bytes = DEFAULT_BYTES;
    private String value = DEFAULT;

    /// Returns the interval in force, in bytes.
    static long bytes() {
        return bytes;
    }

    static OptionalLong parse(String text) {
        try {
            return OptionalLong.of(ByteSizes.parse(text));
        } catch (IllegalArgumentException noNumber) {
            return OptionalLong.empty();
        }
    }

    @Override
    public String combine(Set<String> values) {
        return values.stream()
                .filter(text -> parse(text).isPresent())
                .min(Comparator.comparingLong(text -> parse(text).orElse(DEFAULT_BYTES)))
                .orElse(DEFAULT);
    }

    @Override
    public void setValue(String text) {
        parse(text).ifPresent(interval -> {
            bytes = interval;
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
