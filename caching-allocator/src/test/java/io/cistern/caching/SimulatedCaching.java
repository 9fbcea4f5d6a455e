package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Objects;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/// The caching allocator on a simulated GPU, behind the public calls and in the test's hands.
final class SimulatedCaching implements AllocatorProvider, AutoCloseable {
    static final int DEVICE = 0;

    final SimulatedGpu gpu;
    final DeviceMemory memory;
    private @Nullable CachingAllocator opened;

    SimulatedCaching(long capacityBytes) {
        this(capacityBytes, "caching");
    }

    /// With options.
    SimulatedCaching(long capacityBytes, String spec) {
        gpu = SimulatedGpu.builder().capacityBytes(capacityBytes).build();
        List<SegmentSourceProvider> sources = ServiceLoader.load(SegmentSourceProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(List.of(this), sources))
                .open();
        memory.setCurrent(spec);
    }

    CachingAllocator caching() {
        return Objects.requireNonNull(opened, "opened with the memory");
    }

    long newStream() {
        return gpu.streams().create(DEVICE);
    }

    long allocate(long byteSize, long stream) {
        return memory.allocate(byteSize, DEVICE, stream);
    }

    void free(long address, long stream) {
        memory.free(address, stream);
    }

    long reservedBytes() {
        return caching().reservedBytes(DEVICE).orElseThrow();
    }

    long trim() {
        return caching().trim(DEVICE, 0);
    }

    /// Bytes that the thread caches of all threads hold.
    long threadCacheBytes() {
        DeviceCache cache = caching().cache(DEVICE);
        return cache.threadCaches.bytesOf(cache.shards.all());
    }

    /// All memory has come back, and nothing was used out of order.
    @Override
    public void close() {
        caching().checkInvariants();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        var info = gpu.memory().info(DEVICE);
        assertThat(info.freeBytes()).isEqualTo(info.totalBytes());
        gpu.close();
    }

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "caching";
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        opened = new CachingAllocator(context, CachingOptions.read(context));
        return opened;
    }
}
