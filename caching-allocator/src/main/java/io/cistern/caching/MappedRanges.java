package io.cistern.caching;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.VirtualMemory;
import io.cistern.spi.PageSource;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

/// Physical memory as plain ranges, each of one handle at addresses of its own: for those who share, register or
/// export a block and nothing beside it.
///
/// Acquire: reserve → create → map → setAccess; what fails takes back what was done. Release: the way back; memory
/// is gone once its mapping and its handle are, and addresses that the driver keeps are only logged. A segment that the
/// source needs where it is stays.
///
/// **Threads.** Any.
final class MappedRanges implements RangeSource {
    private static final System.Logger LOG = System.getLogger(MappedRanges.class.getName());

    private final VirtualMemory memory;
    private final PageSource source;

    /// The handle at each address.
    private final Map<Long, Long> handles = new ConcurrentHashMap<>();

    MappedRanges(VirtualMemory memory, PageSource source) {
        this.memory = memory;
        this.source = source;
    }

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        long granularity = Sizes.roundUp(Sizes.SLOT, source.traits(device).granularity());
        long size = Sizes.roundUp(byteSize, granularity);
        long address = memory.reserve(device, size, granularity, 0);
        try {
            map(address, size, device);
        } catch (RuntimeException | Error failure) {
            memory.freeReservation(device, address, size);
            throw failure;
        }
        source.mapped(device, address, size, Objects.requireNonNull(handles.get(address)));
        return new Segment(address, size, device);
    }

    private void map(long address, long size, int device) {
        long handle = source.create(size, device);
        boolean mapped = false;
        try {
            memory.map(device, address, size, handle);
            mapped = true;
            memory.setAccess(device, address, size, source.accessors(device), AccessRights.READ_WRITE);
            handles.put(address, handle);
        } catch (RuntimeException | Error failure) {
            if (mapped) {
                memory.unmap(device, address, size);
            }
            source.release(handle, size, device);
            throw failure;
        }
    }

    @Override
    public boolean tryRelease(Segment segment) {
        if (!source.unmapping(segment.device(), segment.address(), segment.byteSize())) {
            return false;
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

    private void unmap(Segment segment) {
        memory.unmap(segment.device(), segment.address(), segment.byteSize());
        long handle = Objects.requireNonNull(handles.remove(segment.address()), "a segment of this source");
        try {
            source.release(handle, segment.byteSize(), segment.device());
            memory.freeReservation(segment.device(), segment.address(), segment.byteSize());
        } catch (CudaException failure) {
            LOG.log(Level.WARNING, "{0} bytes stay reserved: {1}", segment.byteSize(), failure.getMessage());
        }
    }
}
