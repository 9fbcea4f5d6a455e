package io.cistern;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.registry.Registry;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.util.List;

/// Which allocator of one [DeviceMemory] is current on each device, and what it can be exchanged for:
/// reached by [DeviceMemory#currents].
///
/// Whatever becomes current, blocks that are alive go back to the allocators that made them.
///
/// **Threads.** Any thread may call any method at any time.
public final class Currents {
    private final DeviceMemory memory;
    private final Registry registry;

    Currents(DeviceMemory memory, Registry registry) {
        this.memory = memory;
        this.registry = registry;
    }

    /// Makes an allocator current for all devices. The former one stays open.
    ///
    /// @throws IllegalArgumentException if it is closed, or of other device memory
    public void set(Allocator allocator) {
        registry.currents().setAll(registry.requireMember(allocator.opened()));
    }

    /// Makes an allocator current for one device. The former one stays open.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if it is closed, or of other device memory
    public void set(int device, Allocator allocator) {
        registry.currents().set(device, registry.requireMember(allocator.opened()));
    }

    /// Makes an allocator current for a device if another one still is, so that two libraries don't
    /// overwrite each other unknowingly.
    ///
    /// @param expected the allocator that the caller believes to be current, as [DeviceMemory#current] told
    /// @return whether it was, and the next one now is
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if the next one is closed, or of other device memory
    public boolean compareAndSet(int device, Allocator expected, Allocator next) {
        return registry.currents().compareAndSet(device, expected.opened(), registry.requireMember(next.opened()));
    }

    /// Opens an allocator from a spec, makes it current for all devices, and closes those that were: they
    /// drain, and end with their last block. Allocations of other threads go to the old one or to the new
    /// one; none fails because of the swap.
    ///
    /// @throws ConfigurationException if the spec can't be followed; the current allocator stays then
    /// @throws IllegalStateException if the device memory is closed, or in the middle of an allocation or a
    ///     free of the current allocator, as [Allocator#close]: it stays then
    /// @throws RuntimeException the first failure of a former allocator that closes, with the others
    ///     suppressed in it; all of them are closed then, and the new one is current
    public Allocator swap(String spec) {
        return memory.facade(registry.swap(AllocatorSpec.parse(spec)));
    }

    /// Looks for plug-ins again, reads the configuration again, and where it had chosen what is current,
    /// opens what it names now and [swaps][#swap] to that. Where the program chose, nothing changes; nor
    /// where neither the configured spec nor any plug-in is another one than before. Nothing reloads by
    /// itself.
    ///
    /// Limits and other settings are those of the time when the device memory was opened.
    ///
    /// @return what was exchanged, a line for each device: `device 0: caching -> async`
    /// @throws ConfigurationException if what is named can't be opened: then everything is as before
    /// @throws IllegalStateException if the device memory is closed, or in the middle of an allocation or a
    ///     free, as [#swap]: then too
    /// @throws RuntimeException as [#swap]
    public List<String> reload() {
        return registry.reload();
    }

    /// Returns the allocators and sources that can be opened, as they were found last.
    public Catalog catalog() {
        return registry.catalog();
    }
}
