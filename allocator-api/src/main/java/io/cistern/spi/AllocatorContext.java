package io.cistern.spi;

import io.cistern.spi.options.AllocatorOptions;
import java.util.Optional;

/// Gives a plug-in its options, the devices, memory to build on and fences. A plug-in may keep it while it is open.
///
/// **Threads.** Any thread may call any method; [#options], [#upstream] and [#segments] while the plug-in is opened.
public interface AllocatorContext {
    /// Returns the options of its spec, to be read with their types. An option that the plug-in has not read when
    /// it is open is an error.
    AllocatorOptions options();

    /// Returns the devices.
    DeviceEnvironment devices();

    /// Returns where the plug-in reports what it holds from the driver. A plug-in that reports nothing works, but
    /// [thresholds][io.cistern.MemoryMeasure#RESERVED] see only what is requested of it.
    EventSink events();

    /// Opens another allocator to build on, from a spec. The framework closes it after this one.
    ///
    /// @param spec `NAME` or `NAME:key=value,…`
    /// @throws io.cistern.errors.ConfigurationException if there is no such allocator
    DeviceAllocator upstream(String spec);

    /// Opens a source of memory to build on, from the driver in use. The framework closes it after this allocator.
    /// Options of this plug-in's spec that it has not read by now are the source's:
    /// `caching:source=vmm,location=host_numa` is `caching:source="vmm:location=host_numa"`.
    ///
    /// @param spec `NAME` or `NAME:key=value,…` of a segment source. `linear` (`cuMemAlloc`) is a [RangeSource],
    ///     `pages` (`cuMemCreate`) a [PageSource]
    /// @return a [RangeSource] or a [PageSource], to be told apart by a `switch` or a cast
    /// @throws io.cistern.errors.ConfigurationException if there is no such source
    SegmentSource segments(String spec);

    /// Returns fences between streams.
    StreamOrder streams();

    /// Returns what only some environments have: the driver by `extension(CudaDriver.class)`, what an allocator may
    /// reclaim by itself by `extension(MemoryReclaim.Choice.class)`.
    ///
    /// @return empty if this environment has not got it
    <T> Optional<T> extension(Class<T> type);
}
