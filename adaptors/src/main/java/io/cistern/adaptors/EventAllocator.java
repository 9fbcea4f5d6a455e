package io.cistern.adaptors;

import io.cistern.Registration;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/// Tells listeners of each block that comes and goes, of failures, and when the live bytes of a device cross
/// thresholds: each crossing once, in both directions.
///
/// **Crossings.** A change of the count from b to b' crosses upwards every threshold t with b < t ≤ b', and
/// downwards every t with b' < t ≤ b; the count is one atomic number, so crossings of several threads add up.
public final class EventAllocator extends AllocatorAdaptor {
    private static final System.Logger LOG = System.getLogger(EventAllocator.class.getName());

    private final List<AllocationListener> listeners = new CopyOnWriteArrayList<>();
    private final long[] thresholds;
    private final ConcurrentMap<Integer, AtomicLong> liveBytes = new ConcurrentHashMap<>();

    /// Tells a listener from the beginning, as long as there is the allocator.
    ///
    /// @param thresholds numbers of bytes, at least 1 each, in any order
    /// @throws IllegalArgumentException if one is less than 1
    public EventAllocator(DeviceAllocator upstream, AllocationListener listener, long... thresholds) {
        super(upstream);
        listeners.add(listener);
        this.thresholds = thresholds.clone();
        for (long threshold : this.thresholds) {
            if (threshold < 1) {
                throw new IllegalArgumentException("a threshold must be at least 1 byte, not " + threshold);
            }
        }
    }

    /// Tells one more listener of what happens from now on.
    ///
    /// @return a registration; closing it removes the listener
    public Registration addListener(AllocationListener listener) {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address;
        try {
            address = upstream().allocate(byteSize, device, stream);
        } catch (DeviceOutOfMemoryException failure) {
            tell(listener -> listener.failed(failure, stream));
            throw failure;
        }
        tell(listener -> listener.allocated(address, byteSize, device, stream));
        count(device, byteSize);
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        tell(listener -> listener.freed(address, byteSize, device, stream));
        count(device, -byteSize);
        upstream().free(address, byteSize, device, stream);
    }

    private void count(int device, long change) {
        long after = liveBytes.computeIfAbsent(device, _ -> new AtomicLong()).addAndGet(change);
        long before = after - change;
        for (long threshold : thresholds) {
            if (before < threshold && threshold <= after) {
                tell(listener -> listener.onThresholdExceeded(device, threshold, after));
            } else if (after < threshold && threshold <= before) {
                tell(listener -> listener.onThresholdCleared(device, threshold, after));
            }
        }
    }

    @SuppressWarnings("CatchingUnchecked") // whatever a listener throws, memory is not its business
    private void tell(Consumer<AllocationListener> call) {
        for (AllocationListener listener : listeners) {
            try {
                call.accept(listener);
            } catch (RuntimeException e) {
                LOG.log(System.Logger.Level.WARNING, "a listener failed; the allocation goes on", e);
            }
        }
    }
}
