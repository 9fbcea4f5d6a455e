package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.ServiceLoader;
import org.junit.jupiter.api.AfterEach;

/// Device memory of a small simulated GPU, with `caching` as the current allocator.
abstract class ObservedMemory {
    static final int DEVICE = 0;
    static final long MIB = 1 << 20;

    final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).capacityBytes(256 * MIB).build();
    final DeviceMemory memory = DeviceMemory.builder(gpu).catalog(found()).open();
    final long stream = gpu.streams().create(DEVICE);
    final MemoryHistory history = MemoryHistory.of(memory);

    ObservedMemory() {
        memory.setCurrent("caching");
    }

    private static Catalog found() {
        List<AllocatorProvider> allocators = ServiceLoader.load(AllocatorProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        List<SegmentSourceProvider> sources = ServiceLoader.load(SegmentSourceProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        return Catalog.of(allocators, sources);
    }

    @AfterEach
    void close() {
        memory.close();
    }

    long allocate(long byteSize) {
        return memory.allocate(byteSize, DEVICE, stream);
    }

    void free(long address) {
        memory.free(address, stream);
    }
}
