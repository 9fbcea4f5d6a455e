package io.cistern.adaptors;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;

/// Provides `events`: an [EventAllocator] that logs, as `io.cistern.adaptors.EventProvider`, each crossing of a
/// threshold. Options: `threshold`, live bytes of a device; `upstream`, a spec. More thresholds by nesting, other
/// listeners in code.
public final class EventProvider extends AdaptorProvider {
    /// For [java.util.ServiceLoader].
    public EventProvider() {}

    @Override
    public String name() {
        return "events";
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        long threshold = bytes(context.options(), "threshold", "4GiB");
        return new EventAllocator(context.upstream(upstream), new Crossings(), threshold);
    }

    /// Asks for the logger where it is needed: every program that has this JAR makes the provider.
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
