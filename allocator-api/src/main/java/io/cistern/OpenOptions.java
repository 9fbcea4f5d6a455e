package io.cistern;

import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorSpec;
import org.jspecify.annotations.Nullable;

/// What [DeviceMemory#open(OpenOptions)] opens: an allocator by its spec, or one that the program made, and
/// a limit on all its blocks.
///
/// ```java
/// memory.open(OpenOptions.spec("caching").limit(serving));
/// memory.open(OpenOptions.made("arena", new ArenaAllocator()));
/// ```
///
/// **Threads.** Immutable; any thread may use it at any time.
public final class OpenOptions {
    /// Opens the allocator.
    @FunctionalInterface
    private interface Opening {
        OpenAllocator open(Registry registry, @Nullable LimitHandle limit);
    }

    private final Opening opening;
    private final @Nullable MemoryLimit limit;

    private OpenOptions(Opening opening, @Nullable MemoryLimit limit) {
        this.opening = opening;
        this.limit = limit;
    }

    /// Returns options for an allocator that can be opened by name.
    ///
    /// @param spec `NAME` or `NAME:key=value,…`; the name of a segment source means `caching` over it
    /// @throws io.cistern.errors.ConfigurationException if it does not follow the grammar
    public static OpenOptions spec(String spec) {
        return spec(AllocatorSpec.parse(spec));
    }

    /// Returns options for an allocator that can be opened by name.
    public static OpenOptions spec(AllocatorSpec spec) {
        return new OpenOptions((registry, limit) -> registry.open(spec, limit), null);
    }

    /// Returns options for an allocator that the program made itself. It is metered and owned like any
    /// other, and closed with the [Allocator].
    ///
    /// @param name a name for statistics and messages
    public static OpenOptions made(String name, DeviceAllocator allocator) {
        return new OpenOptions((registry, limit) -> registry.open(name, allocator, limit), null);
    }

    /// Returns the same with a limit on the bytes of all its blocks, on all devices together.
    public OpenOptions limit(MemoryLimit limit) {
        return new OpenOptions(opening, limit);
    }

    OpenAllocator open(Registry registry) {
        return opening.open(registry, limit == null ? null : limit.handle());
    }
}
