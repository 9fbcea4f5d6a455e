package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.VirtualMemory;
import io.cistern.spi.PageSource;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// A source of plain ranges, each with one handle of physical memory at addresses of its own. For users that
/// share, register or export one block and nothing beside it.
///
/// Acquire: reserve → create → map → setAccess; a failure undoes the steps before it. Release drops the handle
/// first, since the memory exists until it is unmapped. So if the driver refuses to release or to unmap, the
/// segment is still usable and a later call releases it. Addresses that the driver does not free are only
/// logged. A segment that its source needs stays.
///
/// **Threads.** Any.
public final class MappedRanges implements RangeSource {
    private static final System.Logger LOG = System.getLogger(MappedRanges.class.getName());

    private final VirtualMemory memory;
    private final PageSource source;

    /// The handle at each address, until it is released.
    private final Map<Long, Long> handles = new ConcurrentHashMap<>();

    public MappedRanges(VirtualMemory memory, PageSource source) {
        this.memory = memory;
        this.source = source;
    }

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        long granularity = Sizes.roundUp(Sizes.SLOT, source.traits(device).granularity());
        long size = Sizes.roundUp(byteSize, granularity);
        long address = memory.reserve(device, size, granularity, 0);
        try {
            Segment segment = new Segment(address, size, device);
            map(address, size, device);
            return segment;
        } catch (RuntimeException | Error failure) {
            memory.freeReservation(device, address, size);
            throw failure;
        }
    }

    private void map(Long address, long size, int device) {
        long handle = source.create(size, device);
        boolean mapped = false;
        try {
            memory.map(device, address, size, handle);
            mapped = true;
            memory.setAccess(device, address, size, source.accessors(device), AccessRights.READ_WRITE);
            handles.put(address, handle);
            source.mapped(device, address, size, handle);
        } catch (RuntimeException | Error failure) {
            handles.remove(address);
            if (mapped) {
                memory.unmap(device, address, size);
            }
            source.release(handle, size, device);
            throw failure;
        }
    }

    @Override
    public boolean tryRelease(Segment segment) {
        Long address = segment.address();
        Long handle = handles.get(address);
        if (handle != null) {
            if (!source.unmapping(segment.device(), segment.address(), segment.byteSize())) {
                return false;
            }
            release(handle, segment);
            handles.remove(address);
        }
        unmap(segment);
        return true;
    }

    @Override
    public void release(Segment segment) {
        if (!tryRelease(segment)) {
            throw new IllegalStateException(segment + " is still needed where it is");
        }
    }

    private void release(long handle, Segment segment) {
        try {
            source.release(handle, segment.byteSize(), segment.device());
        } catch (CudaException refusal) {
            if (!refusal.result().endsContext()) {
                source.mapped(segment.device(), segment.address(), segment.byteSize(), handle);
            }
            throw refusal;
        }
    }

    private void unmap(Segment segment) {
        memory.unmap(segment.device(), segment.address(), segment.byteSize());
        try {
            memory.freeReservation(segment.device(), segment.address(), segment.byteSize());
        } catch (CudaException failure) {
            LOG.log(
                    Level.WARNING,
                    "{0} bytes of addresses stay reserved: {1}",
                    segment.byteSize(),
                    failure.getMessage());
        }
    }
}
