package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.internal.names.Failures;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.concurrent.atomic.AtomicLongArray;

/// Provides plain ranges from the driver's pools.
///
/// A range is for all streams at once. So it is allocated on a stream that does nothing else, and the host
/// waits for that stream. The wait ends at once, since memory freed there was no longer in use. A release waits
/// too, so that the pool gives back memory above its threshold.
///
/// **Threads.** Any.
final class DriverPoolSource implements RangeSource {
    /// The alignment that the driver promises.
    private static final long ALIGNMENT = 256;
    /// 0 is the legacy default stream, which is never one of these.
    private static final long NO_STREAM = 0;

    private final CudaDriver driver;
    private final AsyncAllocator pools;
    private final AtomicLongArray streams;

    // Made in advance: closing needs no Java heap.
    private final Failures failures = new Failures();
    private final Runnable closingPools;
    private final Runnable[] closingStreams;

    /// @param pools closed with this
    DriverPoolSource(CudaDriver driver, AsyncAllocator pools, int deviceCount) {
        this.driver = driver;
        this.pools = pools;
        this.closingPools = pools::close;
        this.streams = new AtomicLongArray(deviceCount);
        this.closingStreams = new Runnable[deviceCount];
        for (int device = 0; device < deviceCount; device++) {
            int each = device;
            Runnable destroying = () -> destroyStream(each);
            closingStreams[device] = () -> DeadContext.insist(destroying);
        }
    }

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        if (byteAlignment > ALIGNMENT) {
            throw new UnsupportedOperationException("segment source " + DriverPoolSourceProvider.NAME + " aligns to "
                    + ALIGNMENT + " bytes, as cuMemAllocAsync does, not to " + byteAlignment);
        }
        long stream = stream(device);
        long address = pools.allocate(byteSize, device, stream);
        try {
            driver.streams().synchronize(device, stream);
            return new Segment(address, byteSize, device);
        } catch (RuntimeException | Error failure) {
            pools.free(address, byteSize, device, stream);
            throw failure;
        }
    }

    @Override
    public void release(Segment segment) {
        long stream = stream(segment.device());
        pools.free(segment.address(), segment.byteSize(), segment.device(), stream);
        try {
            driver.streams().synchronize(segment.device(), stream);
        } catch (CudaException | VirtualMachineError later) { // a full heap must not undo a free that is done
            // The pool keeps the memory until the stream is waited for again.
        }
    }

    private long stream(int device) {
        long stream = streams.get(device);
        return stream != NO_STREAM ? stream : newStream(device);
    }

    private synchronized long newStream(int device) {
        if (streams.get(device) == NO_STREAM) {
            streams.set(device, driver.streams().create(device));
        }
        return streams.get(device);
    }

    @Override
    public void close() {
        failures.gatherUnlessCaptured(closingPools);
        for (Runnable closing : closingStreams) {
            failures.gather(closing);
        }
        failures.rethrow();
    }

    private void destroyStream(int device) {
        if (streams.get(device) != NO_STREAM) {
            driver.streams().destroy(device, streams.get(device));
            streams.set(device, NO_STREAM);
        }
    }
}
