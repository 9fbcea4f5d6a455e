package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;

/// Limits the live bytes on each device. The bytes of an allocation in progress count as live.
///
/// **Invariant.** For each device 0 ≤ used ≤ limit; while no call is under way, used = the bytes of the
/// device's live blocks.
public final class LimitAllocator extends AllocatorAdaptor {
    private final long limitBytes;
    private final ConcurrentMap<Integer, AtomicLong> usedBytes = new ConcurrentHashMap<>();

    /// Wraps an allocator.
    ///
    /// @param limitBytes the most requested bytes that may be live at once on one device, at least 1
    /// @throws IllegalArgumentException if `limitBytes` is less than 1
    public LimitAllocator(DeviceAllocator upstream, long limitBytes) {
        super(upstream);
        if (limitBytes < 1) {
            throw new IllegalArgumentException("limitBytes must be at least 1, not " + limitBytes);
        }
        this.limitBytes = limitBytes;
    }

    /// Returns the limit of each device, in bytes.
    public long limitBytes() {
        return limitBytes;
    }

    /// Returns the requested bytes that are live on a device.
    public long usedBytes(int device) {
        return used(device).get();
    }

    /// @throws DeviceOutOfMemoryException if the live bytes would exceed the limit, or if the upstream
    ///     throws this exception
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

    /// Takes bytes if they fit. A request that does not fit never changes the count, so it can't
    /// cause another refusal.
    private void take(AtomicLong used, long byteSize, int device) {
        long present = used.get();
        while (byteSize <= limitBytes - present) {
            if (used.compareAndSet(present, present + byteSize)) {
                return;
            }
            present = used.get();
        }
        String use = "limit of " + limitBytes + " bytes, " + present + " of them in use";
        throw byteSize > limitBytes
                ? DeviceOutOfMemoryException.aboveLimit(byteSize, device, use + "; request less, or raise it")
                : new DeviceOutOfMemoryException(byteSize, device, use);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        used(device).addAndGet(-byteSize); // first: once the upstream frees it, other threads may count it
        upstream().free(address, byteSize, device, stream);
    }

    private AtomicLong used(int device) {
        return usedBytes.computeIfAbsent(device, _ -> new AtomicLong());
    }
}
