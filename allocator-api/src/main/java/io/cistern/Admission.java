package io.cistern;

import io.cistern.cuda.settings.ByteSizes;
import java.util.concurrent.atomic.AtomicBoolean;

/// Device memory that other code, such as a library, allocates without Cistern. The memory counts like a
/// block from [DeviceMemory#admit] or [DeviceLimits#admit] until [#close].
///
/// ```java
/// try (Admission admission = memory.admit(0, bytesOfIndex)) {    // waits its turn until there is room
///     library.build(dataset);                                    // allocates by itself
/// }
/// ```
///
/// **Counting.** The admitted bytes are charged to the limits of the device and of the device memory.
/// Statistics, events, leaks and reports show them under an allocator named `admitted`, at an address that the
/// device does not have.
///
/// **Threads.** Any thread may call any method at any time.
public final class Admission implements AutoCloseable {
    /// Specifies how a request is decided once the limits allow it.
    public enum Basis {
        /// By the estimates of callers. The bytes must fit into the device's memory, less its reserve, the
        /// bytes that all allocators have reserved, and the bytes already admitted. The memory of other
        /// processes does not count.
        ESTIMATE,
        /// By the free bytes that the driver reports. The requested bytes must fit into these, less the
        /// reserve and the admitted bytes that are not [taken][Admission#taken] yet.
        FREE_MEMORY
    }

    private final Admissions admissions;
    private final long address;
    private final long byteSize;
    private final int device;
    private final AtomicBoolean taken = new AtomicBoolean();
    private final AtomicBoolean closed = new AtomicBoolean();

    Admission(Admissions admissions, long address, long byteSize, int device) {
        this.admissions = admissions;
        this.address = address;
        this.byteSize = byteSize;
        this.device = device;
    }

    /// Returns the admitted bytes.
    public long byteSize() {
        return byteSize;
    }

    /// Returns the device's ordinal.
    public int device() {
        return device;
    }

    /// Records that the other code has allocated its memory, so that the driver's free bytes no longer
    /// include it. After this call, admissions by [Basis#FREE_MEMORY] no longer leave room for it. Without
    /// this call they leave room until [#close], which is safe but admits less.
    public void taken() {
        if (!closed.get() && taken.compareAndSet(false, true)) {
            admissions.taken(device, byteSize);
        }
    }

    /// Ends the admission. Call this method after the other code has freed its memory. Requests that wait
    /// for room are then tried again. Closing twice does nothing.
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            admissions.end(address, device, taken.getAndSet(true) ? 0 : byteSize);
        }
    }

    /// Returns the size and the device.
    @Override
    public String toString() {
        return "Admission[" + ByteSizes.count(byteSize) + ", device " + device + (closed.get() ? ", closed]" : "]");
    }
}
