package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.EnumSet;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;

/// A simulated GPU, everything that the class path provides, and a pair of functions that keeps books.
abstract class PoolFixture {
    static final int DEVICE = 0;
    static final long MIB = 1 << 20;

    final SimulatedGpu gpu;
    final DeviceMemory memory;
    final long stream;

    /// Events that the driver refused to destroy as often as it was asked.
    long keptEvents;

    PoolFixture(long capacityBytes) {
        this(capacityBytes, EnumSet.allOf(ReclaimStep.class));
    }

    /// @param steps what is tried when memory runs out
    PoolFixture(long capacityBytes, Set<ReclaimStep> steps) {
        gpu = SimulatedGpu.builder().devices(1).capacityBytes(capacityBytes).build();
        memory = DeviceMemory.builder(gpu).catalog(found()).reclaimSteps(steps).open();
        stream = gpu.streams().create(DEVICE);
    }

    private static Catalog found() {
        List<AllocatorProvider> allocators = ServiceLoader.load(AllocatorProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .sorted((a, b) -> b.priority() - a.priority())
                .toList();
        List<SegmentSourceProvider> sources = ServiceLoader.load(SegmentSourceProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        return Catalog.of(allocators, sources);
    }

    @AfterEach
    void allMemoryReturnsAndNothingWasMisused() {
        memory.pools().all().forEach(MemoryPool::close);
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.heldObjects().getOrDefault("events", 0L)).isEqualTo(keptEvents);
        assertThat(memory.allocators()).as("closed and drained").isEmpty();
        var info = gpu.memory().info(DEVICE);
        assertThat(info.freeBytes()).isEqualTo(info.totalBytes());
    }

    MemoryPool.Builder builder() {
        return MemoryPool.builder(memory);
    }

    long allocate(long byteSize) {
        return memory.allocate(byteSize, DEVICE, stream);
    }

    void free(long... addresses) {
        for (long address : addresses) {
            memory.free(address, stream);
        }
    }

    /// Four bytes of the device, after what the stream does.
    int word(long address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(ValueLayout.JAVA_INT);
            gpu.copies().toHost(DEVICE, host, address, Integer.BYTES, stream);
            gpu.streams().synchronize(DEVICE, stream);
            return host.get(ValueLayout.JAVA_INT, 0);
        }
    }

    /// `cuMemAlloc` and `cuMemFree`, as a program would write them.
    final class Functions implements MemoryPool.SegmentMaker, MemoryPool.SegmentDeleter {
        final List<Long> made = new CopyOnWriteArrayList<>();
        final List<Long> deleted = new CopyOnWriteArrayList<>();

        @Override
        public long allocate(long byteSize, int device) {
            try {
                long address = gpu.memory().allocate(device, byteSize);
                made.add(address);
                return address;
            } catch (CudaException outOfMemory) {
                return 0;
            }
        }

        @Override
        public void free(long address, long byteSize, int device) {
            gpu.memory().free(device, address);
            deleted.add(address);
        }

        MemoryPool pool() {
            return builder().functions(this, this).open();
        }
    }
}
