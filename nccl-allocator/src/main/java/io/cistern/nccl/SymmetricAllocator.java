package io.cistern.nccl;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.Failures;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamOrder;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Blocks at deterministic offsets: up to a size from one segment a device, a [SymmetricArena]; above it from another
/// allocator, as it does where the segment has no room. Which of the two, and the offset, depend on the sequence of
/// sizes, frees and captures on the device alone, so ranks that do the same have the same.
final class SymmetricAllocator extends AllocatorAdaptor implements SymmetricMemory, SegmentRegistry.Owner {
    private final StreamOrder order;
    private final RangeSource source;
    private final SegmentRegistry registry;
    private final DeviceAllocator upstream;
    private final long segmentBytes;
    private final long largest;
    private final AtomicReferenceArray<@Nullable SymmetricArena> arenas;

    SymmetricAllocator(
            AllocatorContext context, RangeSource source, DeviceAllocator upstream, long segmentBytes, long largest) {
        super(upstream);
        this.order = context.streams();
        this.source = source;
        this.upstream = upstream;
        this.segmentBytes = segmentBytes;
        this.largest = Math.min(largest, segmentBytes);
        this.arenas = new AtomicReferenceArray<>(context.devices().deviceCount());
        this.registry = source.extension(SegmentRegistry.Owner.class)
                .flatMap(owner -> owner.registries().stream().findFirst())
                .orElseGet(SegmentRegistry::new);
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
            return 0; // the upstream may have less to ask for; a window can't be registered then
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

    @Override
    public Segment segment(int device) {
        return arena(device).segment();
    }

    @Override
    public SegmentRegistry registry() {
        return registry;
    }

    @Override
    public List<SegmentRegistry> registries() {
        Stream<SegmentRegistry> above =
                upstream.extension(SegmentRegistry.Owner.class).stream().flatMap(owner -> owner.registries().stream());
        return Stream.concat(Stream.of(registry), above).toList();
    }

    /// What the upstream can do with its own blocks, it can't do with these.
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

    /// A segment goes whole, once nothing on it is live and no window lies on it; the next one has the same offsets.
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

    /// Segments go back when the source is closed, those that a window lies on with the last window. What one device
    /// refuses does not keep the others from being waited for.
    @Override
    public void close() {
        Failures failures = new Failures();
        for (int device = 0; device < arenas.length(); device++) {
            SymmetricArena arena = arenas.get(device);
            if (arena != null) {
                failures.gather(arena::close);
            }
        }
        failures.rethrow();
    }
}
