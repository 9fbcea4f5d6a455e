package io.cistern.adaptors;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;

/// Provides `events`, an [EventAllocator] that logs each crossing of a threshold, to the logger
/// `io.cistern.adaptors.EventProvider`. Options: `threshold`, live bytes of a device; `upstream`, a spec.
/// For several thresholds, nest one `events` in another. Other listeners can be added only in code.
public final class EventProvider extends AdaptorProvider {
    /// Created on first use, since every program with this JAR creates the provider.
    private static final class Options {
        static final SpecOption<Long> THRESHOLD = SpecOption.of(
                "events",
                "threshold",
                "bytes, such as `4GiB`",
                REQUIRED,
                "live bytes of a device; each crossing, up or down, is logged",
                EventProvider::threshold);
    }

    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public EventProvider() {}

    @Override
    public String name() {
        return "events";
    }

    @Override
    List<SpecOption<?>> ownOptions() {
        return List.of(Options.THRESHOLD);
    }

    private static Optional<Long> threshold(AllocatorOptions options, String key) {
        Optional<Long> bytes = options.bytes(key);
        if (bytes.orElse(1L) < 1) {
            throw new ConfigurationException("events: threshold must be at least 1, not " + bytes.get());
        }
        return bytes;
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        long threshold = required(Options.THRESHOLD, context, "4GiB");
        return new EventAllocator(context.upstream(upstream), new Crossings(), threshold);
    }

    /// Gets the logger on first use, since every program with this JAR creates the provider.
    private static final class Crossings implements AllocationListener {
        private static final System.Logger LOG = System.getLogger(EventProvider.class.getName());

        @Override
        public void onThresholdExceeded(int device, long thresholdBytes, long liveBytes) {
            log("has reached", device, thresholdBytes, liveBytes);
        }

        @Override
        public void onThresholdCleared(int device, long thresholdBytes, long liveBytes) {
            log("has fallen below", device, thresholdBytes, liveBytes);
        }

        private static void log(String what, int device, long thresholdBytes, long liveBytes) {
            LOG.log(
                    System.Logger.Level.INFO,
                    () -> "device " + device + " " + what + " " + thresholdBytes + " bytes: " + liveBytes
                            + " are live");
        }
    }
}
