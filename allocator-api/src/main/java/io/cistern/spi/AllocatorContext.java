package io.cistern.spi;

import io.cistern.spi.options.AllocatorOptions;
import java.util.Optional;

/// What a plug-in is given to work with.
public interface AllocatorContext {
    /// The options of its spec, to be read with their types.
    AllocatorOptions options();

    /// The devices.
    DeviceEnvironment devices();

    /// Where to tell what happened to memory.
    EventSink events();

    /// Another allocator to build on, opened from a spec; it is closed after this one.
    ///
    /// @param spec `NAME` or `NAME:key=value,…`
    /// @throws io.cistern.errors.ConfigurationException if there is no such allocator
    DeviceAllocator upstream(String spec);

    /// Memory to build on, from the driver in use. Options of this plug-in's spec that it has not asked for by now
    /// are
    /// the source's: `caching:source=vmm,location=host_numa` is `caching:source="vmm:location=host_numa"`.
    ///
    /// @param spec `NAME` or `NAME:key=value,…` of a segment source: `linear` is `cuMemAlloc`, `pages` is
    ///     `cuMemCreate`
    /// @throws io.cistern.errors.ConfigurationException if there is no such source
    SegmentSource segments(String spec);

    /// Order between streams.
    StreamOrder streams();

    /// Asks for what only some environments have; the driver itself is one: `extension(CudaDriver.class)`.
    <T> Optional<T> extension(Class<T> type);
}
