package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.PoolAttribute;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.StreamLatch;
import java.util.List;
import java.util.ServiceLoader;
import org.junit.jupiter.api.AfterEach;

/// A simulated GPU, and everything that the class path provides.
abstract class AsyncFixture {
    static final int DEVICE = 0;
    static final long MIB = 1 << 20;

    final SimulatedGpu gpu;
    final DeviceMemory memory;
    final StreamLatch latch;
    final long stream;
    final long other;

    /// Then nothing can be destroyed.
    boolean contextDies;

    AsyncFixture() {
        this(8192 * MIB);
    }

    AsyncFixture(long capacityBytes) {
        gpu = SimulatedGpu.builder().devices(2).capacityBytes(capacityBytes).build();
        memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                .open();
        latch = new StreamLatch(gpu, DEVICE);
        stream = gpu.streams().create(DEVICE);
        other = gpu.streams().create(DEVICE);
    }

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    /// Returns an allocator without reserves.
    static AsyncAllocator async(CudaDriver driver, int deviceCount, AsyncOptions options, StreamOrder order) {
        return new AsyncAllocator(driver, deviceCount, options, order, new DeviceReserves(driver, deviceCount));
    }

    @AfterEach
    void nothingWasMisused() {
        latch.close();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        if (!contextDies) {
            assertThat(gpu.heldObjects()).doesNotContainKey("events");
        }
        assertThat(memory.allocators()).as("closed and drained").isEmpty();
    }

    long attribute(long pool, PoolAttribute attribute) {
        return gpu.pools().attribute(DEVICE, pool, attribute);
    }

    long figure(Allocator allocator, String name) {
        Long value = allocator.memoryStatistics(DEVICE).get(name);
        assertThat(value).as(name).isNotNull();
        return value;
    }

    /// Lets held streams finish, without a synchronisation that pools would notice.
    void letFinish(long... streams) {
        latch.release();
        for (long each : streams) {
            while (!gpu.streams().isIdle(DEVICE, each)) {
                Thread.onSpinWait();
            }
        }
    }
}
