package io.cistern.nccl.internal.symmetric;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.Failures;
import io.cistern.nccl.internal.segment.SegmentRegistry;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamOrder;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Allocates blocks at deterministic offsets. Blocks up to a size come from one segment per device, a
/// [SymmetricArena]. Larger blocks, and those that the segment has no room for, come from another allocator.
/// Which of the two serves a block, and the offset, depend only on the sequence of sizes, frees and captures on
/// the device. So ranks that make the same sequence get the same offsets.
public final class SymmetricAllocator extends AllocatorAdaptor implements SegmentRegistry.Owner {
    /// A segment that stays while its windows are counted.
    ///
    /// @param windows the count of its windows, this one included; closing a window lowers it
    public record WindowPlace(Segment segment, AtomicInteger windows) {}

    private final StreamOrder order;
    private final RangeSource source;
    private final SegmentRegistry registry;
    private final DeviceAllocator upstream;
    private final long segmentBytes;
    private final long largest;
    private final AtomicReferenceArray<@Nullable SymmetricArena> arenas;

    public SymmetricAllocator(
            AllocatorContext context, RangeSource source, DeviceAllocator upstream, long segmentBytes, long largest) {
        super(upstream);
        this.order = context.streams();
        this.source = source;
        this.upstream = upstream;
        this.segmentBytes = segmentBytes;
        this.largest = Math.min(largest, segmentBytes);
        this.arenas = new AtomicReferenceArray<>(context.devices().deviceCount());
        this.registry = source.extension(SegmentRegistry.Owner.class)
                .orElseThrow()
                .registries()
                .getFirst();
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address = byteSize <= largest ? allocateInArena(byteSize, device, stream) : 0;
        return address != 0 ? address : upstream.allocate(byteSize, device, stream);
    }

    private long allocateInArena(long byteSize, int device, long stream) {
        try {
            long address;
            do {
                address = arena(device).allocate(byteSize, stream);
            } while (address == SymmetricArena.RETIRED);
            return address;
        } catch (DeviceOutOfMemoryException noSegment) {
            return 0; // the upstream may need less memory at once; a window can't be registered then
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        SymmetricArena arena = arenas.get(device);
        if (arena != null && arena.contains(address)) {
            arena.free(address, byteSize, stream);
        } else {
            upstream.free(address, byteSize, device, stream);
        }
    }

    private SymmetricArena arena(int device) {
        SymmetricArena arena = arenas.get(device);
        return arena != null ? arena : open(device);
    }

    private synchronized SymmetricArena open(int device) {
        SymmetricArena arena = arenas.get(device);
        if (arena == null) {
            Segment segment = source.acquire(segmentBytes, SymmetricArena.UNIT, device);
            try {
                arena = new SymmetricArena(segment, order);
            } catch (OutOfMemoryError full) {
                source.release(segment);
                throw full;
            }
            arenas.set(device, arena);
        }
        return arena;
    }

    /// Returns the segment of a device, and creates it if it does not exist. All devices have segments of the
    /// same size.
    ///
    /// @throws DeviceOutOfMemoryException if the source has no memory for it
    public Segment segment(int device) {
        return arena(device).segment();
    }

    /// Counts a new window on the [segment][#segment] of a device. A trim does not take the segment from now on: it
    /// retires under the same monitor, and only without windows.
    ///
    /// @throws DeviceOutOfMemoryException if the source has no memory for it
    public synchronized WindowPlace placeWindow(int device) {
        Segment segment = segment(device);
        return new WindowPlace(segment, registry.windowOpened(segment));
    }

    public SegmentRegistry registry() {
        return registry;
    }

    @Override
    public List<SegmentRegistry> registries() {
        Stream<SegmentRegistry> above =
                upstream.extension(SegmentRegistry.Owner.class).stream().flatMap(owner -> owner.registries().stream());
        return Stream.concat(Stream.of(registry), above).toList();
    }

    /// Hides the extensions of the upstream, which handle only its own blocks.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        OptionalLong above = upstream.reservedBytes(device);
        long own = arenas.get(device) == null ? 0 : segmentBytes;
        return above.isEmpty() ? above : OptionalLong.of(above.getAsLong() + own);
    }

    /// A segment goes back whole, once no block on it is live and no window lies on it. The next segment has
    /// the same offsets.
    @Override
    public long trim(int device, long keepBytes) {
        long own = arenas.get(device) == null ? 0 : segmentBytes;
        long returned = upstream.trim(device, Math.max(0, keepBytes - own));
        return keepBytes < own ? returned + retire(device) : returned;
    }

    private synchronized long retire(int device) {
        SymmetricArena arena = arenas.get(device);
        if (arena == null) {
            return 0;
        }
        try {
            return arena.tryRetire(source) ? segmentBytes : 0;
        } finally {
            if (arena.isRetired()) {
                arenas.set(device, null);
            }
        }
    }

    @Override
    public void streamClosing(int device, long stream) {
        SymmetricArena arena = arenas.get(device);
        if (arena != null) {
            arena.streamClosing(stream);
        }
        upstream.streamClosing(device, stream);
    }

    /// Closing the source frees the segments; a segment with windows is freed with the last window. If
    /// waiting for one device fails, this still waits for the other devices.
    @Override
    public void close() {
        Failures failures = new Failures();
        for (int device = 0; device < arenas.length(); device++) {
            SymmetricArena arena = arenas.get(device);
            if (arena != null) {
                failures.gatherUnlessCaptured(arena::close);
                arenas.set(device, null);
            }
        }
        failures.rethrow();
    }
}
