package io.cistern.guice;

import io.cistern.adaptors.AllocationListener;
import io.cistern.adaptors.EventAllocator;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import java.util.Set;

/// Wraps an allocator in the injected listeners: `guice-listeners:upstream=SPEC`.
///
/// @param listeners the listeners that are notified of its blocks
record ListeningProvider(Set<AllocationListener> listeners) implements AllocatorProvider {
    static final String NAME = "guice-listeners";

    /// Returns a spec that wraps the given one in listeners.
    static String around(String spec) {
        return NAME + ":upstream=\"" + spec.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        String upstream = context.options()
                .text("upstream")
                .orElseThrow(() -> new ConfigurationException("'" + NAME + "' needs an upstream"));
        DeviceAllocator allocator = context.upstream(upstream);
        for (AllocationListener listener : listeners) {
            allocator = new EventAllocator(allocator, listener);
        }
        return allocator;
    }
}
