package io.cistern.observability.jfr;

import io.cistern.cuda.settings.ByteSizes;
import java.util.OptionalLong;

/// The setting for the bytes between two samples of a thread, such as `64MiB`.
final class SampleInterval extends LeastSetting {
    private static volatile long bytes = 64 << 20;

    SampleInterval() {
        super("64MiB");
    }

    /// Returns the interval in force, in bytes.
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
