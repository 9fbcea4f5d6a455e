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
import java.util.function.Consumer;

/// A source of plain ranges, each with one handle of physical memory at addresses of its own. For users that
/// share, register or export a block by itself.
///
/// Acquire: reserve → create → map → setAccess; a failure undoes the steps before it. Release drops the handle
/// first, since the memory exists until it is unmapped. So if the driver refuses to release or to unmap, the
/// segment is still usable and a later call releases it. If it refuses to undo an acquisition, the
/// `refused` consumer receives the segment, to release it later. Addresses that the driver does not free
/// are only logged. A segment that its source needs stays.
///
/// **Threads.** Any.
public final class MappedRanges implements RangeSource {
    private static final System.Logger LOG = System.getLogger(MappedRanges.class.getName());

    private final VirtualMemory memory;
    private final PageSource source;
    private final Consumer<Segment> refused;

    /// By address.
    private final Map<Long, Range> ranges = new ConcurrentHashMap<>();

    /// The parts of a segment that exist, besides its addresses.
    private static final class Range {
        final Segment segment;
        long handle;
        boolean hasHandle;
        boolean isMapped;

        /// Whether the mapping was announced to the source.
        boolean isTold;

        Range(Segment segment) {
            this.segment = segment;
        }
    }

    /// Creates the ranges of a source; `refused` keeps segments whose acquisition failed and was not undone, to
    /// [release][#release] them later.
    public MappedRanges(VirtualMemory memory, PageSource source, Consumer<Segment> refused) {
        this.memory = memory;
        this.source = source;
        this.refused = refused;
    }

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        long granularity = Sizes.roundUp(Sizes.SLOT, source.traits(device).granularity());
        long size = Sizes.roundUp(byteSize, granularity);
        Range range = reserve(size, granularity, device);
        try {
            map(range);
            return range.segment;
        } catch (RuntimeException | Error failure) {
            undo(range);
            throw failure;
        }
    }

    private Range reserve(long byteSize, long granularity, int device) {
        long address = memory.reserve(device, byteSize, granularity, 0);
        try {
            Range range = new Range(new Segment(address, byteSize, device));
            ranges.put(address, range);
            return range;
        } catch (OutOfMemoryError full) {
            freeAddresses(device, address, byteSize);
            throw full;
        }
    }

    private void map(Range range) {
        Segment segment = range.segment;
        long address = segment.address();
        long size = segment.byteSize();
        int device = segment.device();
        range.handle = source.create(size, device);
        range.hasHandle = true;
        memory.map(device, address, size, range.handle);
        range.isMapped = true;
        memory.setAccess(device, address, size, source.accessors(device), AccessRights.READ_WRITE);
        tell(range);
    }

    private void tell(Range range) {
        Segment segment = range.segment;
        source.mapped(segment.device(), segment.address(), segment.byteSize(), range.handle);
        range.isTold = true;
    }

    private void undo(Range range) {
        boolean undone = false;
        try {
            takeBack(range);
            undone = true;
        } catch (CudaException _) {
            // A later release tries again.
        } finally {
            if (!undone) {
                refused.accept(range.segment);
            }
        }
    }

    private void takeBack(Range range) {
        Segment segment = range.segment;
        if (range.hasHandle) {
            source.release(range.handle, segment.byteSize(), segment.device());
            range.hasHandle = false;
        }
        if (range.isMapped) {
            memory.unmap(segment.device(), segment.address(), segment.byteSize());
            range.isMapped = false;
        }
        ranges.remove(segment.address());
        freeAddresses(segment.device(), segment.address(), segment.byteSize());
    }

    @Override
    public boolean tryRelease(Segment segment) {
        Range range = ranges.get(segment.address());
        if (range == null) {
            throw new IllegalArgumentException(segment + " was not acquired here, or is released already");
        }
        boolean wasTold = range.isTold;
        if (wasTold && !source.unmapping(segment.device(), segment.address(), segment.byteSize())) {
            return false;
        }
        range.isTold = false;
        try {
            takeBack(range);
            return true;
        } catch (CudaException refusal) {
            if (wasTold && range.hasHandle && !refusal.result().endsContext()) {
                tell(range);
            }
            throw refusal;
        }
    }

    /// Abandons to the source the addresses of ranges that could not be released. This is the last call.
    public void abandon() {
        ranges.values().forEach(range -> {
            Segment left = range.segment;
            source.abandoned(left.device(), left.address(), left.byteSize());
        });
        ranges.clear();
    }

    @Override
    public void release(Segment segment) {
        if (!tryRelease(segment)) {
            throw new IllegalStateException(segment + " is still needed where it is");
        }
    }

    private void freeAddresses(int device, long address, long byteSize) {
        try {
            memory.freeReservation(device, address, byteSize);
        } catch (CudaException failure) {
            tellRefused(byteSize, failure);
        }
    }

    private static void tellRefused(long byteSize, CudaException failure) {
        try {
            LOG.log(
                    Level.WARNING,
                    "an address range of " + byteSize + " bytes stays reserved: " + failure.getMessage());
        } catch (OutOfMemoryError ofTheHeap) {
            // All else has been given back.
        }
    }
}
