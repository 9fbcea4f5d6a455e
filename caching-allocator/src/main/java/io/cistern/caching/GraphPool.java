package io.cistern.caching;

import io.cistern.spi.DetailedStatistics;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RecordsUse;
import java.util.Optional;
import java.util.OptionalLong;

/// The memory of graphs: a cache of its own, of which nothing moves and nothing goes back before it is closed. Every
/// address that was handed out in a capture is in a graph, whether it is in use now or not, so its page is pinned.
///
/// The end of a stream changes nothing: the stream has no work here but that of the graph, whose order is the shape of
/// the graph and not that of a handle.
final class GraphPool implements DeviceAllocator, RecordsUse {
    private final CachingAllocator cache;

    GraphPool(CachingAllocator cache) {
        this.cache = cache;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address = cache.allocate(byteSize, device, stream);
        cache.pin(device, address, byteSize, Page.Pin.CAPTURED);
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        cache.free(address, byteSize, device, stream);
    }

    @Override
    public boolean recordUse(long address, int device, long stream) {
        return cache.recordUse(address, device, stream);
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        return cache.reservedBytes(device);
    }

    /// Also [DetailedStatistics]; no other ability of the cache holds here.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        if (type == DetailedStatistics.class) {
            return Optional.of(type.cast(cache));
        }
        return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
    }

    @Override
    public void close() {
        cache.unpinAll(Page.Pin.CAPTURED);
        cache.close();
    }
}
