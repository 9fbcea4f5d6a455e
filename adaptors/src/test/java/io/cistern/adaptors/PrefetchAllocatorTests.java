package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.cuda.CudaException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Managed memory is on the device before its first use, and other memory is handed out as ever.
class PrefetchAllocatorTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final long stream = gpu.streams().create(0);

    @AfterEach
    void close() {
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    /// The driver's own.
    private final class Ranges implements DeviceAllocator {
        private final boolean managed;

        Ranges(boolean managed) {
            this.managed = managed;
        }

        @Override
        public long allocate(long byteSize, int device, long on) {
            return managed
                    ? gpu.unifiedMemory().allocate(device, byteSize)
                    : gpu.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long on) {
            gpu.streams().synchronize(device, on);
            gpu.memory().free(device, address);
        }
    }

    private Allocator prefetching(boolean managed) {
        DeviceAllocator made = new PrefetchAllocator(new Ranges(managed), gpu.unifiedMemory());
        return memory.open(OpenOptions.made("prefetching", made));
    }

    @Test
    void blocksMoveToTheDeviceInTheOrderOfTheirStream() {
        long free = gpu.memory().freeBytes(0);
        gpu.keepBusy(0, stream, 1_000_000);
        long block = prefetching(true).allocate(16 * MIB, 0, stream);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(free);
        gpu.streams().synchronize(0, stream);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(free - 16 * MIB);
        memory.free(block, stream);
    }

    @Test
    void memoryThatIsNotManagedIsHandedOutAsItIs() {
        Allocator allocator = prefetching(false);
        long block = allocator.allocate(MIB, 0, stream);
        assertThat(block).isNotZero();
        assertThat(allocator.allocate(0, 0, stream)).isZero();
        memory.free(block, stream);
    }

    @Test
    void aRefusalOfTheUpstreamIsTheCallers() {
        Allocator allocator = prefetching(false);
        assertThat(catchThrowable(() -> allocator.allocate(1L << 40, 0, stream)))
                .isInstanceOf(CudaException.class);
    }
}
