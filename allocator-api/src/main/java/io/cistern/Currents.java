package io.cistern;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.util.List;

/// Chooses and exchanges the current allocators of one [DeviceMemory], one for each device.
/// [DeviceMemory#currents] returns it.
///
/// Live blocks go back to the allocators that made them, whichever is current.
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
    /// @throws IllegalArgumentException if it is closed, or belongs to another device memory
    public void set(Allocator allocator) {
        registry.currents().setAll(registry.requireMember(allocator.opened()));
        registry.observers().deliver();
    }

    /// Makes an allocator current for one device. The former one stays open.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if it is closed, or belongs to another device memory
    public void set(int device, Allocator allocator) {
        registry.currents().set(device, registry.requireMember(allocator.opened()));
        registry.observers().deliver();
    }

    /// Makes an allocator current for a device if the expected one still is, so that two libraries don't
    /// overwrite each other's choice unknowingly.
    ///
    /// @param expected the allocator that [DeviceMemory#current] returned before
    /// @param next the allocator to become current
    /// @return whether the expected one was current, and the next one is now
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if the next one is closed, or belongs to another device memory
    public boolean compareAndSet(int device, Allocator expected, Allocator next) {
        OpenAllocator member = registry.requireMember(next.opened());
        boolean exchanged = registry.currents().compareAndSet(device, expected.opened(), member);
        registry.observers().deliver();
        return exchanged;
    }

    /// Returns whether an allocator is current on a device. Opens none.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public boolean isCurrent(int device, Allocator allocator) {
        return registry.currents().isCurrent(device, allocator.opened());
    }

    /// Opens an allocator from a spec, makes it current for all devices, and closes the former current ones,
    /// whose memory goes back with their last block. Allocations of other threads go to the old one or to the
    /// new one; none fails because of the swap.
    ///
    /// @throws ConfigurationException if the spec can't be followed; the current allocator stays then
    /// @throws IllegalStateException if the device memory is closed, or if the calling thread is in the middle
    ///     of an allocation or a free of the current allocator, as for [Allocator#close]: that one stays
    ///     current then
    /// @throws RuntimeException if former allocators fail to close: the first failure, with the others
    ///     suppressed in it. All of them are closed then, and the new one is current
    public Allocator swap(String spec) {
        try {
            return memory.facade(registry.swap(AllocatorSpec.parse(spec)));
        } finally {
            registry.observers().deliver();
        }
    }

    /// Looks for plug-ins and reads the configuration again. On devices whose current allocator the
    /// configuration had chosen, opens the allocator that it names now and [swaps][#swap] to it, if that spec
    /// or a plug-in changed. On devices for which the program chose, nothing changes. Nothing reloads by
    /// itself.
    ///
    /// Limits and other settings stay as they were when the device memory was opened.
    ///
    /// @return the exchanges, a line for each device: `device 0: caching -> async`
    /// @throws ConfigurationException if the named allocator can't be opened; nothing changes then
    /// @throws IllegalStateException as for [#swap]; nothing changes then
    /// @throws RuntimeException as for [#swap]
    public List<String> reload() {
        try {
            return registry.reload();
        } finally {
            registry.observers().deliver();
        }
    }

    /// Returns the allocators and sources that can be opened by name, as found by the last search.
    public Catalog catalog() {
        return registry.catalog();
    }
}
