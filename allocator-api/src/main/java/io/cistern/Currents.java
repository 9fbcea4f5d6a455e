package io.cistern;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.registry.CurrentAllocators;
import io.cistern.internal.registry.Registry;
import io.cistern.spi.catalog.Catalog;
import java.util.List;

/// Chooses and replaces the current allocators of one [DeviceMemory], one for each device.
/// [DeviceMemory#currents] returns it.
///
/// Live blocks go back to the allocators that made them, whichever is current. An allocator that the framework
/// opened closes once it is current nowhere: see [DeviceMemory#setCurrent]. Allocators that the program opened
/// stay open.
///
/// **Threads.** Any thread may call any method at any time.
public final class Currents {
    private final Registry registry;

    Currents(Registry registry) {
        this.registry = registry;
    }

    /// Makes an allocator that the program opened current for all devices. [DeviceMemory#setCurrent] does so from
    /// a spec.
    ///
    /// @throws IllegalArgumentException if it is closed, or belongs to another device memory
    /// @throws IllegalStateException as for [DeviceMemory#setCurrent]
    /// @throws RuntimeException as for [DeviceMemory#setCurrent]
    public void set(Allocator allocator) {
        try {
            registry.setCurrent(allocator.opened());
        } finally {
            registry.observers().deliver();
        }
    }

    /// Makes an allocator that the program opened current for one device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if it is closed, or belongs to another device memory
    /// @throws IllegalStateException as for [DeviceMemory#setCurrent]
    /// @throws RuntimeException as for [DeviceMemory#setCurrent]
    public void set(int device, Allocator allocator) {
        try {
            registry.setCurrent(device, allocator.opened());
        } finally {
            registry.observers().deliver();
        }
    }

    /// Makes an allocator current for a device if the expected one still is, so that two libraries don't
    /// overwrite each other's choice unknowingly.
    ///
    /// @param expected the allocator that [DeviceMemory#current] returned before
    /// @param next the allocator to become current
    /// @return whether the expected one was current, and the next one is now
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if the next one is closed, or belongs to another device memory
    /// @throws IllegalStateException as for [DeviceMemory#setCurrent]
    /// @throws RuntimeException as for [DeviceMemory#setCurrent]
    public boolean compareAndSet(int device, Allocator expected, Allocator next) {
        try {
            return registry.compareAndSetCurrent(device, expected.opened(), next.opened());
        } finally {
            registry.observers().deliver();
        }
    }

    /// Returns whether an allocator is current on a device. Opens none.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public boolean isCurrent(int device, Allocator allocator) {
        return registry.currents().isCurrent(device, allocator.opened());
    }

    /// Looks for plug-ins and reads the configuration again. On devices whose current allocator the
    /// configuration had chosen, opens the allocator that it names now and makes it current, if that spec or a
    /// plug-in changed. The former one closes, as for [DeviceMemory#setCurrent]. On devices for which the
    /// program chose, nothing changes. Nothing reloads by itself.
    ///
    /// Limits and other settings stay as they were when the device memory was opened.
    ///
    /// @return the changes, a line for each device: `device 0: caching -> async`
    /// @throws ConfigurationException if the named allocator can't be opened; nothing changes then
    /// @throws IllegalStateException as for [DeviceMemory#setCurrent]; nothing changes then
    /// @throws RuntimeException as for [DeviceMemory#setCurrent]
    public List<String> reload() {
        try {
            return registry.reload().stream()
                    .map(CurrentAllocators.Exchange::toString)
                    .toList();
        } finally {
            registry.observers().deliver();
        }
    }

    /// Returns the allocators and sources that can be opened by name, as found by the last search.
    public Catalog catalog() {
        return registry.catalog();
    }
}
