package io.cistern;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.internal.names.Devices;
import io.cistern.internal.names.Sizes;
import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.LimitHandle;
import java.time.Duration;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The limits and reserves of the devices of one [DeviceMemory]. [DeviceMemory#limits] returns this object.
///
/// ```java
/// memory.limits().device(0).setShare(0.8);
/// memory.limits().device(0).lift();
/// memory.limits().setReserve(0, 1L << 30);          // left to kernels and libraries
/// ```
///
/// **Reserve.** Kernels, their local memory, and libraries such as cuBLAS and cuDNN take device memory
/// directly from the driver. A reserve leaves some memory free for them. If an allocation would take the
/// driver's free bytes below the reserve, allocators give back idle memory; if that is not enough, the
/// allocation is refused. While there is a reserve, a thread of Cistern regularly checks the free bytes,
/// and gives idle memory back if they are fewer than the reserve. The reserve does not affect blocks that
/// `caching` hands out from its cache.
///
/// For some allocators Cistern can't tell in advance whether a block needs more memory from the driver: for
/// `async`, a C library, an allocator that the program made, and a plug-in that is built on neither a
/// segment source nor another allocator. While there is a reserve, each allocation from one of these asks
/// the driver for its free bytes. If the block came out of the reserve, it goes back immediately and the
/// request is refused.
///
/// The driver itself may use the reserve: for managed memory, which it moves to the host when other code
/// needs the device's memory, and for graphs of `async` when they are launched. The checking thread then
/// restores the reserve.
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

    /// Returns the limit on the requested bytes of the live blocks of all allocators on a device. The
    /// program can set, change and lift it.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public MemoryLimit device(int device) {
        return limits[Devices.check(device, limits.length)];
    }

    /// Reserves bytes of a device for code that allocates without Cistern. If fewer bytes are free,
    /// allocators give back idle memory during this call. Live blocks keep their memory.
    ///
    /// @param byteSize the reserve in bytes; 0 for no reserve
    /// @throws IllegalArgumentException if `byteSize` is negative, or more than the device has
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

    /// Returns the device's reserve in bytes; 0 if there is none.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public long reserveBytes(int device) {
        return memory.registry.reserves().of(Devices.check(device, limits.length));
    }

    /// Admits memory that other code allocates without Cistern, as [DeviceMemory#admit] does, with a bound
    /// on the wait.
    ///
    /// @param longest how long to wait; zero to be refused immediately if there is no room
    /// @param basis how the request is decided once the limits allow it
    /// @throws IllegalArgumentException if `byteSize` or `longest` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the bytes are not admitted in time or can
    ///     never fit; or if the calling thread would have to wait but is interrupted. Its interrupt status
    ///     stays set
    /// @throws IllegalStateException if the device memory is closed
    public Admission admit(int device, long byteSize, Duration longest, Admission.Basis basis) {
        return memory.admissions.admit(device, byteSize, longest, basis);
    }

    /// Returns the total memory of all devices, in bytes.
    static long capacity(DeviceMemory memory) {
        return IntStream.range(0, memory.environment().deviceCount())
                .mapToLong(device -> memory.driver().devices().totalBytes(device))
                .sum();
    }
}
