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

/// Notifies listeners of each allocation, each free, each failure for lack of memory, and each time that the live
/// bytes of a device cross a threshold, in either direction.
///
/// **Crossings.** A change of the count from b to b' crosses every threshold t with b < t ≤ b' upwards, and
/// every t with b' < t ≤ b downwards. The count of a device is one atomic number, so each crossing is
/// reported once, however many threads change the count.
public final class EventAllocator extends AllocatorAdaptor {
    private static final System.Logger LOG = System.getLogger(EventAllocator.class.getName());

    private final List<AllocationListener> listeners = new CopyOnWriteArrayList<>();
    private final long[] thresholds;
    private final ConcurrentMap<Integer, AtomicLong> liveBytes = new ConcurrentHashMap<>();

    /// Wraps an allocator, with a listener that can't be removed.
    ///
    /// @param thresholds thresholds for the live bytes of each device: at least 1 byte each, in any order
    /// @throws IllegalArgumentException if a threshold is less than 1
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

    /// Adds a listener for events from now on.
    ///
    /// @return a registration; closing it removes the listener
    public Registration addListener(AllocationListener listener) {
        return Registration.in(listeners, listener);
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

    @SuppressWarnings("CatchingUnchecked") // a listener's failure must not fail the allocation
    private void tell(Consumer<AllocationListener> call) {
        for (AllocationListener listener : listeners) {
            try {
                call.accept(listener);
            } catch (RuntimeException | Error e) {
                LOG.log(System.Logger.Level.WARNING, "a listener failed; the allocation continues", e);
            }
        }
    }
}
