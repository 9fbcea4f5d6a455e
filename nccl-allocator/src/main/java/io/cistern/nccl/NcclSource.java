package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeadContext;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.nccl.internal.call.BlockingWork;
import io.cistern.nccl.internal.segment.SegmentRegistry;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/// Provides segments from `ncclMemAlloc`: memory that NCCL can share, register and reach from all peers.
///
/// A segment is freed once no communicator has it registered. [#tryRelease] keeps it while such a
/// communicator is in a call. Segments that remain when the source is closed are freed when the last
/// communicator deregisters them.
final class NcclSource implements RangeSource, SegmentRegistry.Owner {
    private final NcclApi api;
    private final CudaDriver driver;
    private final SegmentRegistry registry = new SegmentRegistry();
    private final Set<Segment> segments = ConcurrentHashMap.newKeySet();

    // Made in advance: closing needs no Java heap for it.
    private final Consumer<Segment> late = this::freeLate;

    NcclSource(NcclApi api, CudaDriver driver) {
        this.api = api;
        this.driver = driver;
    }

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        if (registry.isClosed()) {
            throw new IllegalStateException("the pool of the source nccl is closed");
        }
        long address = allocate(byteSize, device);
        Segment segment;
        try {
            requireAligned(address, byteAlignment);
            Segment acquired = new Segment(address, byteSize, device);
            segments.add(acquired);
            segment = acquired;
        } catch (RuntimeException | Error failure) {
            api.free(device, address);
            throw failure;
        }
        try {
            registry.appeared(segment);
        } catch (RuntimeException | Error failure) {
            tryRelease(segment); // else it goes when this is closed
            throw failure;
        }
        return segment;
    }

    private static void requireAligned(long address, long byteAlignment) {
        if (address % byteAlignment != 0) {
            throw new IllegalStateException("ncclMemAlloc returned 0x" + Long.toHexString(address)
                    + ", which is not a multiple of " + byteAlignment);
        }
    }

    private long allocate(long byteSize, int device) {
        long[] address = new long[1]; // a boxed one would be lost if the Java heap is full
        try {
            BlockingWork.run(() -> address[0] = api.allocate(device, byteSize));
            return address[0];
        } catch (NcclException failure) {
            if (failure.result() == NcclResult.UNHANDLED_CUDA_ERROR && isOutOfMemory(failure, byteSize, device)) {
                long deviceBytes = driver.devices().totalBytes(device);
                throw byteSize > deviceBytes
                        ? DeviceOutOfMemoryException.aboveDevice(byteSize, device, deviceBytes)
                        : new DeviceOutOfMemoryException(byteSize, device, "source nccl: no memory", failure);
            }
            throw failure;
        }
    }

    /// Returns whether memory ran out. NCCL has one result for all failures of CUDA; its text contains CUDA's
    /// own.
    private boolean isOutOfMemory(NcclException failure, long byteSize, int device) {
        return failure.lastError().contains("out of memory") || driver.memory().freeBytes(device) < byteSize;
    }

    /// Releases a segment. If NCCL does not take it back, the segment is registered again as before.
    @Override
    public boolean tryRelease(Segment segment) {
        if (!registry.letGo(segment)) {
            return false;
        }
        try {
            free(segment);
            return true;
        } catch (NcclException failure) {
            registry.appeared(segment);
            SegmentRegistry.stays(segment, failure);
            return false;
        } catch (RuntimeException | Error failure) {
            registry.appeared(segment);
            throw failure;
        }
    }

    private void free(Segment segment) {
        BlockingWork.run(() -> api.free(segment.device(), segment.address()));
        segments.remove(segment);
    }

    @Override
    public void release(Segment segment) {
        if (!tryRelease(segment)) {
            throw new IllegalStateException(segment + " stays allocated: NCCL refused to free it, or it is registered"
                    + " with a communicator that is in a call");
        }
    }

    @Override
    public List<SegmentRegistry> registries() {
        return List.of(registry);
    }

    @Override
    public void close() {
        registry.abandonAll(segments, late);
    }

    /// Tries a few times, since nothing retries later.
    private void freeLate(Segment segment) {
        for (int tries = 0; tries < DeadContext.MOST_TRIES; tries++) {
            try {
                free(segment);
                return;
            } catch (RuntimeException failure) {
                SegmentRegistry.stays(segment, failure);
            }
        }
    }
}
