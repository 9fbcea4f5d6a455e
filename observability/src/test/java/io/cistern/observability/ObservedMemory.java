package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.ServiceLoader;
import org.junit.jupiter.api.AfterEach;

/// Device memory of a small simulated GPU, with `caching` as the current allocator.
public abstract class ObservedMemory {
    protected static final int DEVICE = 0;
    protected static final long MIB = 1 << 20;

    protected final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(256 * MIB).build();
    protected final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(found()).open();
    protected final long stream = gpu.streams().create(DEVICE);
    protected final MemoryHistory history = MemoryHistory.of(memory);

    protected ObservedMemory() {
        memory.setCurrent("caching");
    }

    protected static Catalog found() {
        return Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class));
    }

    private static <P> List<P> all(Class<P> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    @AfterEach
    void close() {
        memory.pools().all().forEach(MemoryPool::close);
        memory.close();
    }

    protected long allocate(long byteSize) {
        return memory.allocate(byteSize, DEVICE, stream);
    }

    protected void free(long address) {
        memory.free(address, stream);
    }
}
