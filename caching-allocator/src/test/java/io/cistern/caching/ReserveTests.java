package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Memory that is left to kernels and libraries, and what lowering a limit gives back.
class ReserveTests extends PoolFixture {
    private static final long CAPACITY = 256 * MIB;

    ReserveTests() {
        super(CAPACITY);
    }

    private long driverFree() {
        return gpu.memory().info(DEVICE).freeBytes();
    }

    private void await(java.util.function.BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(10).toNanos();
        while (!condition.getAsBoolean() && System.nanoTime() < end) {
            Thread.onSpinWait();
        }
        assertThat(condition.getAsBoolean()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:expandable_segments=false", "direct"})
    void allocatorsLeaveTheReserveFree(String spec) {
        memory.setCurrent(spec);
        memory.limits().setReserve(DEVICE, 64 * MIB);
        assertThat(memory.limits().reserveBytes(DEVICE)).isEqualTo(64 * MIB);
        long block = allocate(180 * MIB);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> allocate(40 * MIB))
                .withStackTraceContaining("a reserve of " + 64 * MIB + " bytes")
                .satisfies(refusal -> assertThat(refusal.report().orElseThrow().advice())
                        .singleElement()
                        .asString()
                        .startsWith("a reserve of " + 64 * MIB + " bytes (64.0 MiB) is kept for kernels and libraries")
                        .endsWith(": lower the reserve (DeviceLimits.setReserve), or free blocks"));
        assertThat(driverFree()).isGreaterThanOrEqualTo(64 * MIB);
        memory.limits().setReserve(DEVICE, 0);
        long more = allocate(40 * MIB);
        free(block, more);
    }

    @Test
    void idleMemoryServesBeforeTheReserveRefuses() {
        memory.setCurrent("caching");
        long other = gpu.streams().create(DEVICE);
        memory.free(memory.allocate(150 * MIB, DEVICE, other), other);
        memory.limits().setReserve(DEVICE, 64 * MIB);
        long block = allocate(150 * MIB);
        assertThat(driverFree()).isGreaterThanOrEqualTo(64 * MIB);
        free(block);
    }

    @Test
    void settingAReserveGivesIdleMemoryBack() {
        memory.setCurrent("caching");
        free(allocate(200 * MIB));
        gpu.streams().synchronize(DEVICE, stream);
        memory.limits().setReserve(DEVICE, 128 * MIB);
        assertThat(driverFree()).isBetween(128 * MIB, 160 * MIB);
    }

    @Test
    void aReserveIsAsBeforeIfIdleMemoryCannotBeGivenBack() {
        memory.setCurrent("caching");
        memory.limits().setReserve(DEVICE, MIB);
        free(allocate(200 * MIB));
        RuntimeException broken = new IllegalStateException("in a test");
        memory.open(OpenOptions.made("broken", new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long on) {
                throw new AssertionError("nobody asks it");
            }

            @Override
            public void free(long address, long byteSize, int device, long on) {}

            @Override
            public long trim(int device, long keepBytes) {
                throw broken;
            }
        }));
        assertThatThrownBy(() -> memory.limits().setReserve(DEVICE, 250 * MIB)).isSameAs(broken);
        assertThat(memory.limits().reserveBytes(DEVICE)).isEqualTo(MIB);
    }

    @Test
    void nobodyWatchesWithoutAReserve() throws InterruptedException {
        memory.limits().setReserve(DEVICE, MIB);
        assertThat(watching()).isNotEmpty();
        memory.limits().setReserve(DEVICE, 0);
        for (Thread thread : watching()) {
            assertThat(thread.join(Duration.ofSeconds(10))).isTrue();
        }
    }

    private static List<Thread> watching() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("cistern-reserve"))
                .toList();
    }

    /// The program does nothing meanwhile.
    @Test
    void whatALibraryTakesIsMadeUpForFromIdleMemory() {
        memory.setCurrent("caching");
        memory.limits().setReserve(DEVICE, 64 * MIB);
        free(allocate(150 * MIB));
        gpu.streams().synchronize(DEVICE, stream);
        long library = gpu.memory().allocate(DEVICE, 100 * MIB);
        await(() -> driverFree() >= 64 * MIB);
        long more = gpu.memory().allocate(DEVICE, 60 * MIB);
        await(() -> driverFree() >= 64 * MIB);
        gpu.memory().free(DEVICE, library);
        gpu.memory().free(DEVICE, more);
    }

    /// Has idle memory that it can't give back at first.
    private final class Stubborn implements DeviceAllocator {
        private final long idle = gpu.memory().allocate(DEVICE, 100 * MIB);
        private volatile int refusals;
        private volatile long reserved = 100 * MIB;

        @Override
        public long allocate(long byteSize, int device, long on) {
            throw new AssertionError("nobody asks it");
        }

        @Override
        public void free(long address, long byteSize, int device, long on) {}

        @Override
        public OptionalLong reservedBytes(int device) {
            return OptionalLong.of(reserved);
        }

        @Override
        @SuppressWarnings("NonAtomicOperationOnVolatileField") // one thread watches
        public long trim(int device, long keepBytes) {
            if (keepBytes >= reserved) {
                return 0;
            }
            if (++refusals < 3) {
                throw new IllegalStateException("in a test");
            }
            gpu.memory().free(device, idle);
            reserved = 0;
            return 100 * MIB;
        }
    }

    @Test
    void theWatchGoesOnAfterAnAllocatorThrew() {
        memory.open(OpenOptions.made("stubborn", new Stubborn()));
        memory.limits().setReserve(DEVICE, 64 * MIB);
        long library = gpu.memory().allocate(DEVICE, 150 * MIB);
        await(() -> driverFree() >= 64 * MIB);
        gpu.memory().free(DEVICE, library);
    }

    @Test
    void aReserveOfADeviceThatNobodyUsesOpensNoContext() {
        SimulatedGpu two = SimulatedGpu.builder().devices(2).build();
        try (DeviceMemory both = DeviceMemory.builder(two).open()) {
            both.limits().setReserve(1, MIB);
            assertThat(two.devices().isUsed(1)).isFalse();
        }
        two.close();
    }

    @Test
    void aReserveThatTheDeviceHasNotGotIsRefused() {
        assertThatIllegalArgumentException().isThrownBy(() -> memory.limits().setReserve(DEVICE, CAPACITY + 1));
        assertThatIllegalArgumentException().isThrownBy(() -> memory.limits().setReserve(DEVICE, -1));
        assertThat(memory.limits().reserveBytes(DEVICE)).isZero();
    }

    @Test
    void loweringALimitTrimsAndThenRefuses() {
        memory.setCurrent("caching");
        long kept = allocate(20 * MIB);
        free(allocate(100 * MIB));
        gpu.streams().synchronize(DEVICE, stream);
        long reserved = memory.current(DEVICE).reservedBytes(DEVICE).orElseThrow();
        assertThat(reserved).isGreaterThanOrEqualTo(120 * MIB);
        memory.limits().device(DEVICE).setByteSize(32 * MIB);
        assertThat(memory.current(DEVICE).reservedBytes(DEVICE).orElseThrow()).isLessThanOrEqualTo(32 * MIB);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> allocate(13 * MIB));
        long within = allocate(12 * MIB);
        memory.limits().device(DEVICE).setByteSize(MIB);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> allocate(1));
        free(kept, within);
    }
}
