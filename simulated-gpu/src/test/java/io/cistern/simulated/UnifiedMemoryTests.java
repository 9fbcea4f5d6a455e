package io.cistern.simulated;

import static io.cistern.simulated.MachineFixture.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.simulated.internal.memory.ManagedContents;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What managed memory takes of a device, and gives way to.
final class UnifiedMemoryTests {
    private static final MemoryLocation HERE = MemoryLocation.device(0);
    private static final MemoryLocation THERE = MemoryLocation.device(1);

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1024 * MIB).build();
    private final long stream = gpu.streams().create(0);
    private final long all = free(0);

    @AfterEach
    void close() {
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private long free(int device) {
        return gpu.memory().freeBytes(device);
    }

    private long managed(long byteSize) {
        return gpu.unifiedMemory().allocate(0, byteSize);
    }

    private void prefetch(long address, long byteSize, MemoryLocation target) {
        gpu.unifiedMemory().prefetch(0, address, byteSize, target, stream);
        gpu.streams().synchronize(0, stream);
    }

    @Test
    void itTakesNothingBeforeItsUseAndNoMoreThanIsThere() {
        long address = managed(4 * all);
        assertThat(free(0)).isEqualTo(all);
        prefetch(address, 64 * MIB, HERE);
        assertThat(free(0)).isEqualTo(all - 64 * MIB);
        prefetch(address, 4 * all, HERE);
        assertThat(free(0)).isLessThan(ManagedContents.PAGE_BYTES);
        gpu.memory().free(0, address);
        assertThat(free(0)).isEqualTo(all);
    }

    @Test
    void itMovesToTheHostAndToTheOtherDevice() {
        long address = managed(64 * MIB);
        prefetch(address, 64 * MIB, HERE);
        prefetch(address, 16 * MIB, MemoryLocation.host());
        assertThat(free(0)).isEqualTo(all - 48 * MIB);
        prefetch(address, 64 * MIB, THERE);
        assertThat(free(0)).isEqualTo(all);
        assertThat(free(1)).isEqualTo(all - 64 * MIB);
        gpu.memory().free(0, address);
        assertThat(free(1)).isEqualTo(all);
    }

    @Test
    void workOfADeviceMovesWhatItUses() {
        long address = managed(64 * MIB);
        gpu.copies().fillBytes(0, address, (byte) 1, 32 * MIB, stream);
        gpu.streams().synchronize(0, stream);
        assertThat(free(0)).isEqualTo(all - 32 * MIB);
        gpu.memory().free(0, address);
    }

    @Test
    void whatWasUsedLongestAgoGivesWay() {
        long first = managed(600 * MIB);
        long second = managed(600 * MIB);
        prefetch(first, 600 * MIB, HERE);
        prefetch(second, 600 * MIB, HERE);
        assertThat(free(0)).isLessThan(ManagedContents.PAGE_BYTES);
        prefetch(second, 600 * MIB, MemoryLocation.host());
        assertThat(free(0)).as("the rest of the first").isBetween(599 * MIB, 601 * MIB);
        gpu.memory().free(0, first);
        gpu.memory().free(0, second);
    }

    @Test
    void itGivesWayToMemoryThatCantMove() {
        long managed = managed(4 * all);
        prefetch(managed, 4 * all, HERE);
        long linear = gpu.memory().allocate(0, 256 * MIB);
        long handle = gpu.virtualMemory().create(256 * MIB, PhysicalMemory.onDevice(0));
        long pool = gpu.pools().create(MemoryPoolProperties.onDevice(0));
        long pooled = gpu.pools().allocateFrom(0, pool, 32 * MIB, stream);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> gpu.memory().allocate(0, 1000 * MIB));
        gpu.pools().free(0, pooled, stream);
        gpu.virtualMemory().release(0, handle);
        gpu.memory().free(0, linear);
        gpu.memory().free(0, managed);
    }

    @Test
    void aManagedPoolHoldsMoreThanTheDevice() {
        gpu.memory().allocate(0, all - 128 * MIB);
        long pool = gpu.pools().create(MemoryPoolProperties.managed(0));
        long address = gpu.pools().allocateFrom(0, pool, 192 * MIB, stream);
        gpu.copies().fillWords(0, address, 7, 192 * MIB / 4, stream);
        gpu.streams().synchronize(0, stream);
        assertThat(free(0)).isLessThan(64 * MIB);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> gpu.pools().create(new MemoryPoolProperties(HERE, 1, 0, false, true)));
        gpu.pools().free(0, address, stream);
        gpu.streams().synchronize(0, stream);
        assertThat(free(0)).isEqualTo(128 * MIB);
    }

    @Test
    void aManagedPoolTakesPrefetchesAndNoAdvice() {
        long pool = gpu.pools().create(MemoryPoolProperties.managed(0));
        long address = gpu.pools().allocateFrom(0, pool, MIB, stream);
        gpu.unifiedMemory().prefetch(0, address, MIB, HERE, stream);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> gpu.unifiedMemory()
                        .advise(0, address, MIB, MemoryAdvice.SET_PREFERRED_LOCATION, MemoryLocation.host()))
                .satisfies(refusal -> assertThat(refusal.result()).isEqualTo(CudaResult.NOT_SUPPORTED));
        gpu.pools().free(0, address, stream);
    }
}
