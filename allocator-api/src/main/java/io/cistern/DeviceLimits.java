package io.cistern;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.internal.names.Devices;
import io.cistern.internal.names.Sizes;
import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.LimitHandle;
import java.time.Duration;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The limits on the devices of one [DeviceMemory], which [DeviceMemory#limits] returns.
///
/// ```java
/// memory.limits().device(0).setShare(0.8);
/// memory.limits().device(0).lift();
/// memory.limits().setReserve(0, 1L << 30);          // left to kernels and libraries
/// ```
///
/// **Reserve.** Kernels, their local memory, and libraries such as cuBLAS and cuDNN take device memory without
/// asking any allocator. A reserve leaves them some: allocators give back idle memory, and are refused more,
/// before the driver's free bytes fall below it. While there is a reserve, one thread watches it and gives idle
/// memory back as soon as fewer bytes are free. Cached blocks of `caching` are handed out as before.
///
/// Only the driver knows whether a block of `async` needs more memory. For blocks of a C library, of an allocator
/// of the program or of a plug-in without sources, only its own code knows. While there is a reserve, each
/// allocation from one of these asks the driver for its free bytes; if the block came out of the reserve, it goes
/// back at once and the request is refused. The driver itself may use the reserve: for managed memory, which it
/// moves to the host when others need the device, and for graphs of `async` when they are launched; the watching
/// thread then restores the reserve.
///
/// **Threads.** Any thread may call any method at any time.
public final class DeviceLimits {
    private final DeviceMemory memory;
    private final MemoryLimit[] limits;

    /// @param set by device, the limits that hold from the beginning, or null
    DeviceLimits(DeviceMemory memory, @Nullable MemoryLimit[] set) {
        this.memory = memory;
        this.limits = IntStream.range(0, set.length)
                .mapToObj(device -> ofDevice(device, set[device]))
                .toArray(MemoryLimit[]::new);
    }

    private MemoryLimit ofDevice(int device, @Nullable MemoryLimit set) {
        LimitHandle handle = set != null ? set.handle() : LimitHandle.of("device " + device, Budget.UNLIMITED, null);
        Runnable begin = set != null ? null : () -> memory.registry.charge(device, handle.budget());
        return new MemoryLimit(
                handle,
                new MemoryLimit.Home(
                        begin,
                        () -> memory.driver().devices().totalBytes(device),
                        () -> memory.statistics(device).requestedBytes()));
    }

    /// Returns the limit on the bytes requested on a device, over all allocators, to be set, changed and
    /// lifted.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public MemoryLimit device(int device) {
        return limits[Devices.check(device, limits.length)];
    }

    /// Reserves bytes of a device for code that allocates without Cistern. If fewer bytes are free, allocators
    /// give back idle memory now. Live blocks keep their memory.
    ///
    /// @param byteSize bytes; 0 for no reserve
    /// @throws IllegalArgumentException if it is negative, or the device has fewer
    /// @throws IndexOutOfBoundsException if there is no such device
    public void setReserve(int device, long byteSize) {
        Devices.check(device, limits.length);
        Sizes.notNegative("the reserve of device " + device, byteSize);
        long total = memory.driver().devices().totalBytes(device);
        if (byteSize > total) {
            throw new IllegalArgumentException(
                    "a reserve of " + ByteSizes.count(byteSize) + " is more than device " + device + " has: " + total);
        }
        memory.reserveWatch.reserve(device, byteSize);
    }

    /// Returns the bytes of a device that are reserved for other code; 0 if there is no reserve.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public long reserveBytes(int device) {
        return memory.registry.reserves().of(Devices.check(device, limits.length));
    }

    /// Admits memory that other code takes for itself, as [DeviceMemory#admit] does, with a bound on the wait.
    ///
    /// @param longest how long to wait; zero to be refused at once
    /// @param basis how it is decided, after the limits
    /// @throws IllegalArgumentException if the bytes or the time are negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if they are not admitted in time or could never be,
    ///     or the thread has to wait and is interrupted; it stays interrupted
    /// @throws IllegalStateException if the device memory is closed
    public Admission admit(int device, long byteSize, Duration longest, Admission.Basis basis) {
        return memory.admissions.admit(device, byteSize, longest, basis);
    }

    /// Returns the bytes of all devices together.
    static long capacity(DeviceMemory memory) {
        return IntStream.range(0, memory.environment().deviceCount())
                .mapToLong(device -> memory.driver().devices().totalBytes(device))
                .sum();
    }
}
