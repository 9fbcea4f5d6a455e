package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.caching.CachingProvider;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.Segment;
import io.cistern.spi.catalog.Catalog;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// Segments from `ncclMemAlloc`, from the fake one and from the simulated one.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class NcclSourceTests {
    private static final long MIB = 1L << 20;

    private FakeNccl fake;
    private SimulatedGpu gpu;
    private NcclSource source;

    @BeforeAll
    void compile(@TempDir Path folder) {
        fake = new FakeNccl(folder);
    }

    @BeforeEach
    void open() {
        gpu = SimulatedGpu.builder().capacityBytes(256 * MIB).devices(2).build();
        source = new NcclSource(new NativeNccl(fake.library(), gpu.devices()), gpu);
    }

    @AfterEach
    void close() {
        fake.fail("", 0);
        fake.lastError("");
        source.close();
        assertThat(fake.allocations()).isZero();
        gpu.close();
        fake.calls();
    }

    @Test
    void aSegmentIsWhatNcclGaveAndGoesBackOnce() {
        Segment segment = source.acquire(3 * MIB, 256, 1);
        assertThat(segment.device()).isOne();
        assertThat(segment.address() % (2 * MIB)).isZero();
        assertThat(source.tryRelease(segment)).isTrue();
        assertThat(fake.calls()).containsExactly("ncclMemAlloc(3145728)", "ncclMemFree()");
    }

    @Test
    void noMemoryIsTheErrorWorthARetry() {
        fake.fail("ncclMemAlloc", 1);
        fake.lastError("Cuda failure 2 'out of memory'");
        assertThatThrownBy(() -> source.acquire(MIB, 256, 0))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasCauseInstanceOf(NcclException.class);
        fake.lastError("Cuda failure 999");
        assertThatThrownBy(() -> source.acquire(MIB, 256, 0)).isInstanceOf(NcclException.class);
        assertThatThrownBy(() -> source.acquire(300 * MIB, 256, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
        fake.fail("ncclMemAlloc", 3);
        assertThatThrownBy(() -> source.acquire(300 * MIB, 256, 0)).isInstanceOf(NcclException.class);
    }

    @Test
    void whatNcclDoesNotTakeBackStaysRegisteredAndIsTriedAgain() {
        Segment segment = source.acquire(2 * MIB, 256, 0);
        fake.fail("ncclMemFree", 1);
        assertThat(source.tryRelease(segment)).isFalse();
        assertThat(source.registries().getFirst().present(0)).containsExactly(segment);
        fake.fail("", 0);
        source.release(segment);
        assertThat(source.registries().getFirst().present(0)).isEmpty();
    }

    @Test
    void simulatedMemoryIsReachedByAllDevicesAndGivenBackWhole() {
        try (DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Catalog.of(List.of(new CachingProvider()), List.of(new NcclSourceProvider())))
                        .open();
                MemoryPool pool = memory.pools().open("nccl")) {
            long stream = gpu.streams().create(1);
            long block = pool.allocate(3 * MIB, 0, stream);
            gpu.copies().fillBytes(1, block, (byte) 1, 3 * MIB, stream);
            gpu.streams().synchronize(1, stream);
            assertThat(gpu.misuses()).isEmpty();
            memory.free(block, stream);
        }
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(256 * MIB);
    }

    @Test
    void simulatedMemoryRunsOut() {
        try (DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Catalog.of(List.of(new CachingProvider()), List.of(new NcclSourceProvider())))
                        .open();
                MemoryPool pool = memory.pools().open("nccl")) {
            assertThatThrownBy(() -> pool.allocate(300 * MIB, 0, 1)).isInstanceOf(DeviceOutOfMemoryException.class);
        }
    }
}
