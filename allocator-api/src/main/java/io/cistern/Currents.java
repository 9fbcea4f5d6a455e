package io.cistern;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.registry.Registry;
import io.cistern.spi.catalog.Catalog;
import java.util.List;

/// Chooses and replaces the current allocators of one [DeviceMemory], one for each device.
/// [DeviceMemory#currents] returns this object.
///
/// The framework closes an allocator that it opened itself once that allocator is current on no device: see
/// [DeviceMemory#setCurrent].
///
/// **Threads.** Any thread may call any method at any time.
public final class Currents {
    private final Registry registry;

    Currents(Registry registry) {
        this.registry = registry;
    }

    /// Makes an open allocator current for all devices. [DeviceMemory#setCurrent] opens an allocator from a
    /// spec and makes it current.
    ///
    /// @throws IllegalArgumentException if the allocator is closed, or belongs to another device memory
    /// @throws IllegalStateException as for [DeviceMemory#setCurrent]
    /// @throws RuntimeException as for [DeviceMemory#setCurrent]
    public void set(Allocator allocator) {
        registry.currents().set(allocator.opened());
    }

    /// Makes an open allocator current for a device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if the allocator is closed, or belongs to another device memory
    /// @throws IllegalStateException as for [DeviceMemory#setCurrent]
    /// @throws RuntimeException as for [DeviceMemory#setCurrent]
    public void set(int device, Allocator allocator) {
        registry.currents().set(device, allocator.opened());
    }

    /// Makes an allocator current for a device if the expected allocator is still current there, so that
    /// two libraries don't unknowingly overwrite each other's choice.
    ///
    /// @param expected the allocator that [DeviceMemory#current] returned before
    /// @param next the allocator to become current
    /// @return true if the expected allocator was current; `next` is current then
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if `next` is closed, or belongs to another device memory
    /// @throws IllegalStateException as for [DeviceMemory#setCurrent]
    /// @throws RuntimeException as for [DeviceMemory#setCurrent]
    public boolean compareAndSet(int device, Allocator expected, Allocator next) {
        return registry.currents().compareAndSet(device, expected.opened(), next.opened());
    }

    /// Returns whether an allocator is current on a device. Opens no allocator.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public boolean isCurrent(int device, Allocator allocator) {
        return registry.currents().isCurrent(device, allocator.opened());
    }

    /// Looks for plug-ins again, and reads again which allocators the configuration names. If a plug-in or
    /// the spec for a device has changed, this call opens the allocator that the configuration now names
    /// for the device, and makes it current there. The framework closes the former allocator, as for
    /// [DeviceMemory#setCurrent]. Devices for which the program has chosen an allocator keep it.
    ///
    /// Limits and other settings stay as they were when the device memory was opened.
    ///
    /// @return the changes, one line for each device whose allocator changed, such as `device 0: caching ->
    ///     async`
    /// @throws ConfigurationException if an allocator that the configuration names can't be opened; nothing
    ///     changes then
    /// @throws IllegalStateException as for [DeviceMemory#setCurrent]; nothing changes then
    /// @throws RuntimeException as for [DeviceMemory#setCurrent]
    public List<String> reload() {
        return registry.currents().reload();
    }

    /// Returns the allocators and sources that can be opened by name, as the last [#reload] or the opening
    /// of the device memory found them.
    public Catalog catalog() {
        return registry.catalog();
    }
}
