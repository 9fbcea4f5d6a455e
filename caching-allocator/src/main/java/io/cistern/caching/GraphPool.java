package io.cistern.caching;

import io.cistern.caching.internal.page.Page;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeadContext;
import io.cistern.spi.GraphAllocator;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.StreamUses;
import java.util.Optional;
import java.util.OptionalLong;

/// The memory of graphs: a cache that moves nothing, and returns nothing before the graphs are gone. Each
/// address that was allocated in a capture is part of a graph, in use or not, so its page is pinned.
///
/// The end of a stream returns nothing. Blocks that it freed serve the next stream with its handle, since
/// graphs, not handles, determine their order.
final class GraphPool implements GraphAllocator, StreamUses {
    private final CachingAllocator cache;
    private final CudaDriver driver;

    GraphPool(CachingAllocator cache, CudaDriver driver) {
        this.cache = cache;
        this.driver = driver;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        cache.cache(device).shards.opened(stream); // an ended stream with this handle left its memory
        long address = cache.allocate(byteSize, device, stream);
        try {
            cache.pin(device, address, byteSize, Page.Pin.CAPTURED);
            return address;
        } catch (OutOfMemoryError notPinned) {
            cache.free(address, byteSize, device, stream);
            throw notPinned;
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        cache.free(address, byteSize, device, stream);
    }

    @Override
    public void streamClosing(int device, long stream) {
        cache.streamEnded(device, stream);
    }

    @Override
    public boolean recordUse(long address, int device, long stream) {
        return cache.recordUse(address, device, stream);
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        return cache.reservedBytes(device);
    }

    /// Also offers the cache's [MemoryStatistics], but no other ability of the cache.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        if (type == MemoryStatistics.class) {
            return Optional.of(type.cast(cache));
        }
        return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
    }

    /// Waits for the device only if work outside the graphs still uses memory.
    @Override
    public void graphsGone() {
        cache.unpinAll(Page.Pin.CAPTURED);
        for (int device = 0; device < driver.devices().count(); device++) {
            int each = device;
            DeadContext.survive(() -> trimIdle(each));
        }
    }

    private void trimIdle(int device) {
        if (cache.reservedBytes(device).orElse(0) > 0 && cache.trim(device, 0) == 0) {
            driver.devices().synchronize(device);
            cache.trim(device, 0);
        }
    }

    @Override
    public void close() {
        cache.close();
    }
}
