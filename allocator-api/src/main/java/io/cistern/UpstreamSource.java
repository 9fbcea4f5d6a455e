package io.cistern;

import io.cistern.cuda.Streams;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamOrder;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/// A segment source over an open allocator. It takes blocks on the legacy default stream and waits on the host
/// until they are free for every stream.
///
/// **Threads.** Any.
final class UpstreamSource implements RangeSource {
    private static final long ALIGNMENT = 256;

    private final DeviceAllocator upstream;
    private final String name;
    private final StreamOrder order;
    private final DeviceReserves noReserves;

    /// The blocks of segments aligned to more than 256 bytes, by the segment's address.
    private final Map<Long, Segment> around = new ConcurrentHashMap<>();

    UpstreamSource(Allocator allocator) {
        DeviceMemory memory = allocator.memory();
        this.noReserves =
                new DeviceReserves(memory.driver(), memory.environment().deviceCount());
        this.name = allocator.toString();
        this.upstream = allocator.asUpstream();
        this.order = memory.moduleSupport().streams();
    }

    @Override
    public Segment acquire(long byteSize, long byteAlignment, int device) {
        long spare = Math.max(0, byteAlignment - ALIGNMENT);
        if (byteSize > Long.MAX_VALUE - spare) {
            throw DeviceOutOfMemoryException.aboveLimit(byteSize, device, "more than any address space has");
        }
        long block = block(byteSize, spare, device);
        try {
            long address = (block + byteAlignment - 1) & -byteAlignment;
            if (spare > 0) {
                around.put(address, new Segment(block, byteSize + spare, device));
            }
            awaitFormerUses(device);
            return new Segment(address, byteSize, device);
        } catch (Throwable failure) {
            around.remove((block + byteAlignment - 1) & -byteAlignment);
            upstream.free(block, byteSize + spare, device, Streams.LEGACY_DEFAULT);
            throw failure;
        }
    }

    private long block(long byteSize, long spare, int device) {
        try {
            return upstream.allocate(byteSize + spare, device, Streams.LEGACY_DEFAULT);
        } catch (DeviceOutOfMemoryException refusal) {
            throw refusal.passedOn(
                    byteSize,
                    "no segment of " + ByteSizes.exact(byteSize) + (refusal.isByLimit() ? "" : " from " + name)
                            + (refusal.detail().isEmpty() ? "" : ": " + refusal.detail()));
        }
    }

    private void awaitFormerUses(int device) {
        long fence = order.record(device, Streams.LEGACY_DEFAULT);
        try {
            order.synchronize(device, fence);
        } finally {
            order.release(device, fence);
        }
    }

    @Override
    public void release(Segment segment) {
        Segment block = around.getOrDefault(segment.address(), segment);
        upstream.free(block.address(), block.byteSize(), block.device(), Streams.LEGACY_DEFAULT);
        around.remove(segment.address());
    }

    /// Returns no reserves: the upstream keeps them itself, and may serve from its idle memory.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return type == DeviceReserves.class ? Optional.of(type.cast(noReserves)) : RangeSource.super.extension(type);
    }

    @Override
    public void close() {
        upstream.close();
    }
}
