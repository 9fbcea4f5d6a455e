package io.cistern.spi;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorOptions;
import java.util.Optional;

/// Gives a plug-in its options, the devices, fences, and memory to build on. A plug-in may use the context
/// until it is closed.
///
/// **Threads.** Any thread may call any method. Only the plug-in's `open` may call [#options], [#upstream],
/// [#segments] and [#ranges].
public interface AllocatorContext {
    /// Returns the options of the plug-in's spec.
    AllocatorOptions options();

    /// Returns the devices.
    DeviceEnvironment devices();

    /// Returns the sink to which the plug-in reports the memory that it holds from the driver. A plug-in
    /// need not report anything, but then [thresholds][io.cistern.MemoryMeasure#RESERVED] count only the
    /// bytes requested from it.
    EventSink events();

    /// Opens another allocator to build on, from a spec. The framework closes it after the object that the
    /// plug-in's `open` returned.
    ///
    /// @param spec `NAME` or `NAME:key=value,…`
    /// @throws io.cistern.errors.ConfigurationException if there is no such allocator, it can't run here, or an
    ///     option is invalid
    DeviceAllocator upstream(String spec);

    /// Opens a segment source to build on. The framework closes it after the object that the plug-in's
    /// `open` returned. Options of the plug-in's spec that the plug-in has not read before this call go to
    /// the source: `caching:source=vmm,location=host_numa` means `caching:source="vmm:location=host_numa"`.
    ///
    /// @param spec `NAME` or `NAME:key=value,…` of a segment source. `linear` (`cuMemAlloc`) is a
    ///     [RangeSource], `pages` (`cuMemCreate`) a [PageSource]
    /// @throws io.cistern.errors.ConfigurationException if there is no such source, it can't run here, or an
    ///     option is invalid
    SegmentSource segments(String spec);

    /// Opens a source of plain ranges to build on: see [#segments].
    ///
    /// @throws io.cistern.errors.ConfigurationException as for [#segments]; also if the spec names a source
    ///     of pages
    default RangeSource ranges(String spec) {
        if (segments(spec) instanceof RangeSource ranges) {
            return ranges;
        }
        throw new ConfigurationException("'" + spec + "' is a page source, not a range source such as 'linear'");
    }

    /// Returns the object that records fences and orders streams.
    StreamOrder streams();

    /// Returns an optional object: `extension(CudaDriver.class)` returns the driver, and
    /// `extension(MemoryReclaim.Choice.class)` the reclaim steps that an allocator may take by itself.
    ///
    /// @return the object; empty if this context has no object of the type
    <T> Optional<T> extension(Class<T> type);
}
