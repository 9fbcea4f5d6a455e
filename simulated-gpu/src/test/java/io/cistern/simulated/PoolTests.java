package io.cistern.simulated;

import static io.cistern.simulated.MachineFixture.MIB;
import static io.cistern.simulated.MemoryTests.assertFails;
import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class PoolTests {
    private final MachineFixture machine = MachineFixture.h200();
    private final SimulatedGpu gpu = machine.gpu;
    private final long a = machine.stream();
    private final long b = machine.stream();

    @AfterEach
    void close() {
        machine.open();
        gpu.close();
    }

    private long allocate(long pool, long byteSize, long stream) {
        return gpu.pools().allocateFrom(0, pool, byteSize, stream);
    }

    /// Pools take addresses beforehand, and all that a device could hold is a 300th of a process's.
    @Test
    void aThousandPoolsHaveAddresses() {
        for (int i = 0; i < 1000; i++) {
            assertThat(allocate(machine.pool(0), MIB, a)).isNotZero();
        }
    }

    @Test
    void growsByPagesAndUsesWhatIsLeftOfTheLast() {
        long pool = machine.pool(-1);
        List<Long> reserved = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            allocate(pool, 20 * MIB, a);
            reserved.add(machine.reserved(pool) / MIB);
        }
        assertThat(reserved).containsExactly(32L, 64L, 64L, 96L, 128L, 128L);
        assertThat(gpu.pools().attribute(0, pool, PoolAttribute.USED_CURRENT)).isEqualTo(120 * MIB);
    }

    @Test
    void aThresholdOfZeroReleasesAtTheNextSynchronization() {
        long pool = machine.pool(0);
        long free = gpu.memory().freeBytes(0);
        long address = allocate(pool, 64 * MIB, a);
        gpu.pools().free(0, address, a);
        assertThat(gpu.streams().isIdle(0, a)).isTrue();
        gpu.pools().trimTo(0, pool, 0);
        assertThat(machine.reserved(pool)).isEqualTo(64 * MIB);
        gpu.streams().synchronize(0, a);
        assertThat(machine.reserved(pool)).isZero();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(free);
    }

    @Test
    void anotherStreamsSynchronisationReleasesNothing() {
        long pool = machine.pool(0);
        gpu.pools().free(0, allocate(pool, 64 * MIB, a), a);
        gpu.streams().synchronize(0, b);
        gpu.pools().trimTo(0, pool, 0);
        assertThat(machine.reserved(pool)).isEqualTo(64 * MIB);
    }

    @Test
    void aThresholdKeepsItsPages() {
        long pool = machine.pool(64 * MIB);
        gpu.pools().free(0, allocate(pool, 200 * MIB, a), a);
        gpu.streams().synchronize(0, a);
        assertThat(machine.reserved(pool)).isEqualTo(64 * MIB);
        gpu.pools().trimTo(0, pool, 33 * MIB);
        assertThat(machine.reserved(pool)).isEqualTo(64 * MIB);
        gpu.pools().trimTo(0, pool, 1);
        assertThat(machine.reserved(pool)).isEqualTo(32 * MIB);
    }

    @Test
    void theSameStreamReusesAtOnce() {
        long pool = machine.pool(-1);
        machine.hold(a);
        long address = allocate(pool, MIB, a);
        gpu.pools().free(0, address, a);
        assertThat(allocate(pool, MIB, a)).isEqualTo(address);
    }

    @Test
    void anotherStreamReusesWhatItWaitsFor() {
        long pool = machine.pool(-1);
        long address = allocate(pool, 32 * MIB, a);
        machine.hold(a);
        gpu.pools().free(0, address, a);
        long event = gpu.events().create(0);
        gpu.events().record(0, event, a);
        assertThat(allocate(pool, 32 * MIB, b)).isNotEqualTo(address);
        gpu.streams().await(0, b, event);
        assertThat(allocate(pool, 32 * MIB, b)).isEqualTo(address);
    }

    @Test
    void anotherStreamReusesWhatIsFinishedIfItMay() {
        long strict = machine.pool(-1);
        gpu.pools().setAttribute(0, strict, PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC, 0);
        long kept = allocate(strict, 32 * MIB, a);
        gpu.pools().free(0, kept, a);
        assertThat(allocate(strict, 32 * MIB, b)).isNotEqualTo(kept);
        long pool = machine.pool(-1);
        long address = allocate(pool, 32 * MIB, a);
        gpu.pools().free(0, address, a);
        assertThat(allocate(pool, 32 * MIB, b)).isEqualTo(address);
    }

    @Test
    void aFullPoolWaitsForAnotherStreamRatherThanFail() {
        long pool = gpu.pools().create(new MemoryPoolProperties(MemoryLocation.device(0), 0, 32 * MIB));
        long address = allocate(pool, 32 * MIB, a);
        assertFails(CudaResult.OUT_OF_MEMORY, () -> allocate(pool, 1, b));
        machine.hold(a);
        gpu.pools().free(0, address, a);
        assertThat(allocate(pool, 32 * MIB, b)).isEqualTo(address);
        assertThat(gpu.streams().isIdle(0, b)).isFalse();
    }

    @Test
    void highWaterMarksCanOnlyBeReset() {
        long pool = machine.pool(-1);
        long address = allocate(pool, 64 * MIB, a);
        gpu.pools().free(0, address, a);
        assertThat(gpu.pools().attribute(0, pool, PoolAttribute.USED_HIGH)).isEqualTo(64 * MIB);
        gpu.pools().setAttribute(0, pool, PoolAttribute.USED_HIGH, 0);
        assertThat(gpu.pools().attribute(0, pool, PoolAttribute.USED_HIGH)).isZero();
        assertThat(gpu.pools().attribute(0, pool, PoolAttribute.RESERVED_HIGH)).isEqualTo(64 * MIB);
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.pools().setAttribute(0, pool, PoolAttribute.RESERVED_HIGH, 1));
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.pools().setAttribute(0, pool, PoolAttribute.USED_CURRENT, 0));
    }

    @Test
    void memoryOfADestroyedPoolLivesUntilItIsFreed() {
        long free = gpu.memory().freeBytes(0);
        long pool = machine.pool(-1);
        gpu.pools().setCurrentPool(0, pool);
        long address = gpu.pools().allocate(0, MIB, a);
        gpu.pools().destroy(0, pool);
        assertThat(gpu.pools().currentPool(0)).isEqualTo(gpu.pools().defaultPool(0));
        gpu.copies().fillWords(0, address, 5, 1, a);
        assertThat(machine.read(address, a)).isEqualTo(5);
        gpu.pools().free(0, address, a);
        gpu.streams().synchronize(0, a);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(free);
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.pools().destroy(0, pool));
        assertFails(
                CudaResult.INVALID_VALUE,
                () -> gpu.pools().destroy(0, gpu.pools().defaultPool(0)));
    }
}
