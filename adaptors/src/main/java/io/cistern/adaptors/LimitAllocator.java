package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;

/// Never hands out more than so many bytes at once on each device, and refuses nothing that fits.
///
/// **Invariant.** For each device 0 ≤ used ≤ limit, and at rest used = the bytes of its live blocks.
public final class LimitAllocator extends AllocatorAdaptor {
    private final long limitBytes;
    private final ConcurrentMap<Integer, AtomicLong> usedBytes = new ConcurrentHashMap<>();

    /// Sets a limit.
    ///
    /// @param limitBytes the most bytes asked for that may be live at once on one device
    /// @throws IllegalArgumentException if it is negative
    public LimitAllocator(DeviceAllocator upstream, long limitBytes) {
        super(upstream);
        if (limitBytes < 0) {
            throw new IllegalArgumentException("limitBytes is negative: " + limitBytes);
        }
        this.limitBytes = limitBytes;
    }

    /// The limit on each device.
    public long limitBytes() {
        return limitBytes;
    }

    /// Bytes asked for that are live on a device.
    public long usedBytes(int device) {
        return used(device).get();
    }

    /// @throws DeviceOutOfMemoryException also at the limit
    @Override
    public long allocate(long byteSize, int device, long stream) {
        AtomicLong used = used(device);
        take(used, byteSize, device);
        try {
            return upstream().allocate(byteSize, device, stream);
        } catch (Throwable failure) {
            used.addAndGet(-byteSize);
            throw failure;
        }
    }

    /// Takes bytes if they fit; a request that does not fit is never seen in the count, so it can't refuse
    /// another one.
    private void take(AtomicLong used, long byteSize, int device) {
        long present = used.get();
        while (byteSize <= limitBytes - present) {
            if (used.compareAndSet(present, present + byteSize)) {
                return;
            }
            present = used.get();
        }
        throw new DeviceOutOfMemoryException(
                byteSize, device, "limit of " + limitBytes + " bytes reached: " + present + " are in use");
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        used(device).addAndGet(-byteSize); // First: whoever gets the memory from the upstream's free on may count it.
        upstream().free(address, byteSize, device, stream);
    }

    private AtomicLong used(int device) {
        return usedBytes.computeIfAbsent(device, _ -> new AtomicLong());
    }
}
