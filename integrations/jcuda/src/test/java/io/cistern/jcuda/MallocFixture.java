package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;

/// JCuda's calls with memory of two simulated devices, within a limit of 1 MiB.
final class MallocFixture implements AutoCloseable {
    final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(), List.of()))
            .limitBytes(1 << 20)
            .open();
    final Allocator plain = open("plain");
    final JCudaMalloc driver = new JCudaMalloc(memory, JCudaApi.DRIVER);
    final JCudaMalloc runtime = new JCudaMalloc(memory, JCudaApi.RUNTIME);

    /// The streams of all allocations and frees so far.
    final List<Long> streams = new ArrayList<>();

    private final class PlainMemory implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            streams.add(stream);
            return gpu.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            streams.add(stream);
            gpu.memory().free(device, address);
        }
    }

    MallocFixture() {
        memory.currents().set(plain);
    }

    /// Opens an allocator, which is not current.
    Allocator open(String name) {
        return memory.open(OpenOptions.made(name, new PlainMemory()));
    }

    @Override
    public void close() {
        assertThat(memory.liveBlocks()).isEmpty();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.heldObjects()).doesNotContainKey("events");
        gpu.close();
    }
}
