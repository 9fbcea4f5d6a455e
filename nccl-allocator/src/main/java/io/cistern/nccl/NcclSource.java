package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Segments from `ncclMemAlloc`: memory that NCCL can share, register and reach from all peers.
///
/// A segment goes back once no communicator knows it: [#tryRelease] leaves it where one is in a call, and what is left
/// when the source is closed goes when the last communicator lets go of it.
final class NcclSource implements RangeSource, SegmentRegistry.Owner {
    private static final System.Logger LOG = System.getLogger(NcclSource.class.getName());

    private final NcclApi api;
    private final CudaDriver driver;
    private final SegmentRegistry registry = new SegmentRegistry();
    private final Set<Segment> segments = ConcurrentHashMap.newKeySet();

    NcclSource(NcclApi api, CudaDriver driver) {
        this.api = api;
        this.driver = driver;
    }

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        Segment segment = new Segment(allocate(byteSize, device), byteSize, device);
        if (segment.address() % byteAlignment != 0) {
            api.free(device, segment.address());
            throw new IllegalStateException("ncclMemAlloc gave 0x" + Long.toHexString(segment.address())
                    + ", which is no multiple of " + byteAlignment);
        }
        segments.add(segment);
        registry.appeared(segment);
        return segment;
    }

    private long allocate(long byteSize, int device) {
        try {
            return BlockingWork.get(() -> api.allocate(device, byteSize));
        } catch (NcclException failure) {
            if (failure.result() == NcclResult.UNHANDLED_CUDA_ERROR && isOutOfMemory(failure, byteSize, device)) {
                throw new DeviceOutOfMemoryException(byteSize, device, "source nccl: no memory", failure);
            }
            throw failure;
        }
    }

    /// NCCL has one result for all failures of CUDA; its text has CUDA's own.
    private boolean isOutOfMemory(NcclException failure, long byteSize, int device) {
        return failure.lastError().contains("out of memory") || driver.memory().freeBytes(device) < byteSize;
    }

    /// What NCCL does not take back is there as before, too.
    @Override
    public boolean tryRelease(Segment segment) {
        if (!registry.letGo(segment)) {
            return false;
        }
        try {
            free(segment);
            return true;
        } catch (NcclException failure) {
            LOG.log(Level.WARNING, "{0} stays reserved for now: {1}", segment, failure.getMessage());
            registry.appeared(segment);
            return false;
        }
    }

    private void free(Segment segment) {
        BlockingWork.run(() -> api.free(segment.device(), segment.address()));
        segments.remove(segment);
    }

    @Override
    public void release(Segment segment) {
        if (!tryRelease(segment)) {
            throw new IllegalStateException(segment + " stays: NCCL does not take it back, or it is registered with a"
                    + " communicator that is in a call");
        }
    }

    @Override
    public List<SegmentRegistry> registries() {
        return List.of(registry);
    }

    @Override
    public void close() {
        segments.forEach(segment -> registry.abandon(segment, () -> freeLate(segment)));
    }

    private void freeLate(Segment segment) {
        try {
            free(segment);
        } catch (RuntimeException failure) {
            LOG.log(Level.WARNING, "{0} stays reserved: {1}", segment, failure.getMessage());
        }
    }
}
