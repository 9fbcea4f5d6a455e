package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PointerAttribute;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.ServiceLoader;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The source `managed`: more than a device has, and what it is not for.
class ManagedSourceTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1024 * MIB).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
            .open();
    private final long stream = gpu.streams().create(0);

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    @AfterEach
    void close() {
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"managed", "caching:source=managed", "caching:source=managed,splits=false"})
    void blocksAreTogetherLargerThanTheDevice(String spec) {
        Allocator allocator = memory.setCurrent(spec);
        long[] blocks = new long[4];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = memory.allocate(400 * MIB, 0, stream);
            gpu.copies().fillBytes(0, blocks[i] + 399 * MIB, (byte) i, MIB, stream);
        }
        assertThat(allocator.reservedBytes(0).orElseThrow()).isGreaterThanOrEqualTo(1600 * MIB);
        assertThat(gpu.memory().attribute(0, PointerAttribute.IS_MANAGED, blocks[3]))
                .isOne();
        for (long block : blocks) {
            memory.free(block, stream);
        }
        assertThat(allocator.trim(0, 0, TrimMode.SYNCHRONIZE).returnedBytes()).isGreaterThanOrEqualTo(1600 * MIB);
    }

    @Test
    void oneBlockIsLargerThanTheDevice() {
        memory.setCurrent("managed");
        long block = memory.allocate(3000 * MIB, 0, stream);
        gpu.copies().fillBytes(0, block + 2999 * MIB, (byte) 1, MIB, stream);
        memory.free(block, stream);
    }

    @Test
    void aLimitHoldsForItAsForOtherMemory() {
        try (MemoryPool pool = MemoryPool.builder(memory)
                .spec("managed")
                .limitBytes(2048 * MIB)
                .open()) {
            long block = pool.allocate(2000 * MIB, 0, stream);
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> pool.allocate(100 * MIB, 0, stream))
                    .withMessageContaining("limit");
            memory.free(block, stream);
        }
    }

    @Test
    void allDevicesReachItFromTheStart() {
        try (MemoryPool pool = memory.pools().open("managed")) {
            pool.openTo(0, 1);
            long block = pool.allocate(MIB, 0, stream);
            long there = gpu.streams().create(1);
            gpu.copies().fillBytes(1, block, (byte) 1, MIB, there);
            gpu.streams().synchronize(1, there);
            memory.free(block, stream);
        }
    }

    @Test
    void itDoesNotSleep() {
        try (MemoryPool pool = memory.pools().open("managed")) {
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> pool.sleep(SleepMode.KEEP))
                    .withMessageContaining("managed");
        }
    }

    @Test
    void aDriverWithoutMemoryIsAnOutOfMemory() {
        memory.setCurrent("managed");
        gpu.faults().failOn(DriverCall.MEM_ALLOC_MANAGED, 0, 100, CudaResult.OUT_OF_MEMORY);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> memory.allocate(MIB, 0, stream));
    }
}
