package io.cistern.simulated;

import static io.cistern.simulated.MachineFixture.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.LinearMemory.AddressRange;
import io.cistern.cuda.PointerAttribute;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class MemoryTests {
    private final MachineFixture machine = MachineFixture.h200();
    private final SimulatedGpu gpu = machine.gpu;
    private final long stream = machine.stream();

    @AfterEach
    void close() {
        gpu.close();
    }

    static void assertFails(CudaResult result, ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOfSatisfying(
                        CudaException.class, e -> assertThat(e.result()).isEqualTo(result));
    }

    @Test
    void smallBlocksShareAChunkAndLargeOnesHaveTheirOwn() {
        long free = gpu.memory().freeBytes(0);
        long a = gpu.memory().allocate(0, 3 * MIB / 2);
        long b = gpu.memory().allocate(0, MIB / 2);
        assertThat(b - a).isEqualTo(3 * MIB / 2);
        assertThat(free - gpu.memory().freeBytes(0)).isEqualTo(2 * MIB);
        gpu.memory().allocate(0, 3 * MIB);
        gpu.memory().allocate(0, MIB / 2);
        assertThat(free - gpu.memory().freeBytes(0)).isEqualTo(8 * MIB);
        gpu.memory().free(0, a);
        gpu.memory().free(0, b);
        assertThat(free - gpu.memory().freeBytes(0)).isEqualTo(6 * MIB);
    }

    @Test
    void addressesLookLikeTheDriversAndKnowTheirRange() {
        long a = gpu.memory().allocate(0, 1000);
        assertThat(a).isPositive().isLessThan(1L << 47);
        assertThat(a % 512).isZero();
        assertThat(gpu.memory().range(0, a + 999)).isEqualTo(new AddressRange(a, 1000));
        assertFails(CudaResult.NOT_FOUND, () -> gpu.memory().range(0, a + 1000));
        assertThat(gpu.memory().attribute(0, PointerAttribute.MEMORY_TYPE, a)).isEqualTo(2);
        assertThat(gpu.memory().attribute(0, PointerAttribute.MEMORY_TYPE, machine.host.address()))
                .isEqualTo(1);
        gpu.memory().free(0, a);
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.memory().attribute(0, PointerAttribute.MEMORY_TYPE, a));
    }

    @Test
    void wrongSizesAndAddressesAreRefused() {
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.memory().allocate(0, 0));
        assertFails(CudaResult.OUT_OF_MEMORY, () -> gpu.memory().allocate(0, 1L << 60));
        assertFails(CudaResult.INVALID_DEVICE, () -> gpu.memory().allocate(1, 512));
        long a = gpu.memory().allocate(0, 1000);
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.memory().free(0, a + 512));
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.copies().fillBytes(0, a, (byte) 1, 1001, stream));
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.copies().fillWords(0, a + 2, 1, 1, stream));
        gpu.memory().free(0, 0);
        gpu.memory().free(0, a);
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.memory().free(0, a));
        assertThat(gpu.misuses()).extracting(Misuse::kind).contains(Misuse.Kind.DOUBLE_FREE);
    }

    @Test
    void capacityIsALimit() {
        try (MachineFixture small = MachineFixture.withCapacity(64 * MIB)) {
            long a = small.gpu.memory().allocate(0, 64 * MIB);
            assertThat(small.gpu.memory().freeBytes(0)).isZero();
            assertFails(CudaResult.OUT_OF_MEMORY, () -> small.gpu.memory().allocate(0, 1));
            small.gpu.memory().free(0, a);
            assertThat(small.gpu.memory().freeBytes(0)).isEqualTo(64 * MIB);
        }
    }

    @Test
    void dataTravelsThroughPinnedAndPageableMemory() {
        long a = gpu.memory().allocate(0, 4 * MIB);
        long b = gpu.memory().allocate(0, 4 * MIB);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = arena.allocate(3 * MIB);
            for (long i = 0; i < data.byteSize(); i += 4) {
                data.set(ValueLayout.JAVA_INT, i, (int) (i * 31));
            }
            gpu.copies().toDevice(0, a + 3, data, data.byteSize(), stream);
            gpu.copies().onDevice(0, b + 6, a + 3, data.byteSize(), stream);
            MemorySegment back = arena.allocate(3 * MIB);
            gpu.copies().toHost(0, back, b + 6, back.byteSize(), stream);
            assertThat(back.mismatch(data)).isEqualTo(-1);
            gpu.memory().registerHost(0, back);
            back.fill((byte) 0);
            gpu.copies().toHost(0, back, b + 6, back.byteSize(), stream);
            gpu.streams().synchronize(0, stream);
            assertThat(back.mismatch(data)).isEqualTo(-1);
            gpu.memory().unregisterHost(0, back);
        }
    }

    @Test
    void patternsSurviveUnalignedCopies() {
        long a = gpu.memory().allocate(0, MIB);
        gpu.copies().fillWords(0, a, 0x04030201, 100, stream);
        gpu.copies().onDevice(0, a + 513, a, 400, stream);
        assertThat(machine.read(a + 513, stream)).isEqualTo(0x04030201);
        assertThat(machine.read(a + 514, stream)).isEqualTo(0x01040302);
    }

    @Test
    void aHundredGibibytesOfFillsFitInASmallHeap() {
        long size = 100L << 30;
        long a = gpu.memory().allocate(0, size);
        gpu.copies().fillWords(0, a, 0xabcd, size / 4, stream);
        gpu.copies().fillWords(0, a + size / 2, 1, 1, stream);
        assertThat(machine.mismatches(a, size / 4, 0xabcd, stream)).isEqualTo(1);
    }

    @Test
    void faultsComeAfterTheCallsAskedForAndAsOften() {
        gpu.faults().failOn(DriverCall.MEM_ALLOC, 1, 2, CudaResult.OUT_OF_MEMORY);
        gpu.memory().allocate(0, 512);
        assertFails(CudaResult.OUT_OF_MEMORY, () -> gpu.memory().allocate(0, 512));
        assertFails(CudaResult.OUT_OF_MEMORY, () -> gpu.memory().allocate(0, 512));
        gpu.memory().allocate(0, 512);
        gpu.faults().failOn(DriverCall.MEM_ALLOC, 0, Integer.MAX_VALUE, CudaResult.NOT_PERMITTED);
        assertFails(CudaResult.NOT_PERMITTED, () -> gpu.memory().allocate(0, 512));
        gpu.faults().clear();
        gpu.memory().allocate(0, 512);
        assertThat(gpu.calls().of(DriverCall.MEM_ALLOC)).isEqualTo(6);
    }

    @Test
    void anIllegalAddressInAKernelPoisonsTheContext() {
        long a = gpu.memory().allocate(0, MIB);
        long pool = machine.pool(0);
        machine.launch("cistern_write_sequence_u32", stream, 0x100L, 1L, 1);
        assertFails(CudaResult.ILLEGAL_ADDRESS, () -> gpu.streams().synchronize(0, stream));
        assertFails(CudaResult.ILLEGAL_ADDRESS, () -> gpu.memory().free(0, a));
        assertFails(CudaResult.ILLEGAL_ADDRESS, () -> gpu.pools().allocateFrom(0, pool, 512, stream));
        gpu.pools().trimTo(0, pool, 0);
        gpu.pools().destroy(0, pool);
        assertThat(gpu.misuses()).extracting(Misuse::kind).containsExactly(Misuse.Kind.UNMAPPED_ACCESS);
    }

    @Test
    void devicesReachEachOtherOnlyWhenEnabled() {
        try (MachineFixture two = MachineFixture.withDevices(2)) {
            long s = two.stream();
            long mine = two.gpu.memory().allocate(0, MIB);
            long theirs = two.gpu.memory().allocate(1, MIB);
            assertThat(two.gpu.peers().canAccess(0, 1)).isTrue();
            assertFails(CudaResult.INVALID_VALUE, () -> two.gpu.copies().fillWords(0, theirs, 1, 1, s));
            two.gpu.copies().fillWords(0, mine, 42, 1, s);
            two.gpu.copies().betweenDevices(1, theirs, 0, mine, 4, s);
            two.gpu.peers().enable(0, 1);
            assertFails(
                    CudaResult.PEER_ACCESS_ALREADY_ENABLED,
                    () -> two.gpu.peers().enable(0, 1));
            assertThat(two.read(theirs, s)).isEqualTo(42);
            two.gpu.peers().disable(0, 1);
            assertFails(
                    CudaResult.PEER_ACCESS_NOT_ENABLED, () -> two.gpu.peers().disable(0, 1));
            assertFails(CudaResult.INVALID_HANDLE, () -> two.gpu.streams().synchronize(1, s));
        }
    }

    @Test
    void closedMachinesSayDeinitialized() {
        gpu.close();
        gpu.close();
        assertFails(CudaResult.DEINITIALIZED, () -> gpu.memory().allocate(0, 512));
    }
}
