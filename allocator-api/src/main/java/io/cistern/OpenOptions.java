package io.cistern;

import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorSpec;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// Options for [DeviceMemory#open(OpenOptions)]. They say which allocator to open: one from a spec, one
/// that the program made, or an adaptor around an open one. They may also set a limit on the allocator's
/// blocks.
///
/// ```java
/// memory.open(OpenOptions.spec("caching").limit(serving));
/// memory.open(OpenOptions.made("arena", new ArenaAllocator()));
/// memory.open(OpenOptions.around("logged", allocator, upstream -> new LoggingAllocator(upstream, log)));
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
    /// @throws io.cistern.errors.ConfigurationException if `spec` does not follow the grammar
    public static OpenOptions spec(String spec) {
        return spec(AllocatorSpec.parse(spec));
    }

    /// Returns options for an allocator that can be opened by name.
    public static OpenOptions spec(AllocatorSpec spec) {
        return new OpenOptions((registry, limit) -> registry.open(spec, limit), null);
    }

    /// Returns options for an allocator that the program made itself. The framework counts its blocks and
    /// records their owner, as for any other allocator. The framework closes `allocator` once the
    /// [Allocator] is closed and its last block is freed.
    ///
    /// @param name a name for statistics and messages
    public static OpenOptions made(String name, DeviceAllocator allocator) {
        Objects.requireNonNull(allocator, () -> "allocator " + name + " is null");
        return new OpenOptions((registry, limit) -> registry.open(name, allocator, limit), null);
    }

    /// Returns options for an adaptor around an open allocator, however that allocator was opened.
    ///
    /// Blocks that are allocated through the adaptor count as the adaptor's own; the bytes reserved for
    /// them stay in the statistics of the upstream. Without [#limit] the upstream's limit applies to the
    /// adaptor, too. The upstream still serves its own users. Its memory goes back once both allocators are
    /// closed and all their blocks are freed.
    ///
    /// @param name a name for statistics and messages
    /// @param upstream an allocator that belongs to the device memory with which the adaptor is opened
    /// @param adaptor makes the adaptor, for example an [io.cistern.spi.AllocatorAdaptor]; the adaptor must
    ///     not close its upstream
    public static OpenOptions around(String name, Allocator upstream, UnaryOperator<DeviceAllocator> adaptor) {
        return new OpenOptions((registry, limit) -> registry.openAround(name, upstream.opened(), adaptor, limit), null);
    }

    /// Returns these options with a limit on the requested bytes of the allocator's live blocks, on all
    /// devices together.
    public OpenOptions limit(MemoryLimit limit) {
        return new OpenOptions(opening, limit);
    }

    OpenAllocator open(Registry registry) {
        return opening.open(registry, limit == null ? null : limit.handle());
    }
}
