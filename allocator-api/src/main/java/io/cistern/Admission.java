package io.cistern;

import io.cistern.cuda.settings.ByteSizes;
import java.util.concurrent.atomic.AtomicBoolean;

/// Device memory that other code takes for itself, such as a library that allocates without Cistern. It counts
/// like a block from its admission until [#close]. [DeviceMemory#admit] and [DeviceLimits#admit] admit it.
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
    /// How an admission is decided, after the limits.
    public enum Basis {
        /// The estimates are trusted: bytes are admitted from the device's memory, less its reserve, what all
        /// allocators have reserved and what is already admitted. The memory of other processes is not
        /// considered.
        ESTIMATE,
        /// The bytes that the driver says are free, less the reserve and all that is admitted and not
        /// [taken][Admission#taken] yet.
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

    /// Records that the other code has its memory, so the driver's free bytes no longer include it. Later
    /// admissions by [Basis#FREE_MEMORY] then need not leave room for it any more. Without this call they leave
    /// room until the [#close], which is safe but admits less.
    public void taken() {
        if (!closed.get() && taken.compareAndSet(false, true)) {
            admissions.taken(device, byteSize);
        }
    }

    /// Ends the admission, after the other code has given its memory back. The next request in turn is
    /// tried. Closing twice does nothing.
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            admissions.end(address, device, taken.getAndSet(true) ? 0 : byteSize);
        }
    }

    /// Returns size and device.
    @Override
    public String toString() {
        return "Admission[" + ByteSizes.count(byteSize) + ", device " + device + (closed.get() ? ", closed]" : "]");
    }
}
