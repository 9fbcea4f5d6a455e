package io.cistern.simulated;

import static io.cistern.simulated.MachineFixture.MIB;
import static io.cistern.simulated.MemoryTests.assertFails;
import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.VirtualMemory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class VirtualMemoryTests {
    private static final MemoryLocation DEVICE = MemoryLocation.device(0);

    private final MachineFixture machine = MachineFixture.h200();
    private final SimulatedGpu gpu = machine.gpu;
    private final VirtualMemory vmm = gpu.virtualMemory();
    private final long stream = machine.stream();
    private final long range = vmm.reserve(0, 16 * MIB, 0, 0);
    private final long handle = vmm.create(4 * MIB, PhysicalMemory.onDevice(0));

    @AfterEach
    void close() {
        machine.open();
        gpu.close();
    }

    private void map(long address, long handle) {
        vmm.map(0, address, 4 * MIB, handle);
        vmm.setAccess(0, address, 4 * MIB, DEVICE, AccessRights.READ_WRITE);
    }

    @Test
    void aliasesOfOneHandleShareTheirBytes() {
        map(range, handle);
        map(range + 8 * MIB, handle);
        gpu.copies().fillWords(0, range + 512, 77, 1, stream);
        assertThat(machine.read(range + 8 * MIB + 512, stream)).isEqualTo(77);
    }

    @Test
    void memoryCountsFromCreationUntilNothingHoldsIt() {
        long free = gpu.memory().freeBytes(0);
        long other = vmm.create(2 * MIB, PhysicalMemory.onDevice(0));
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(free - 2 * MIB);
        vmm.map(0, range, 2 * MIB, other);
        vmm.release(0, other);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(free - 2 * MIB);
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.release(0, other));
        vmm.unmap(0, range, 2 * MIB);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(free);
    }

    @Test
    void handlesAreMappedAndUnmappedWhole() {
        assertFails(CudaResult.NOT_SUPPORTED, () -> vmm.map(0, range, 2 * MIB, handle));
        map(range, handle);
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.map(0, range + 2 * MIB, 4 * MIB, handle));
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.unmap(0, range, 2 * MIB));
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.map(0, range + 14 * MIB, 4 * MIB, handle));
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.freeReservation(0, range, 16 * MIB));
        vmm.unmap(0, range, 16 * MIB);
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.freeReservation(0, range, 8 * MIB));
        vmm.freeReservation(0, range, 16 * MIB);
    }

    @Test
    void accessIsGivenToWholeMappingsOnly() {
        vmm.map(0, range, 4 * MIB, handle);
        assertThat(vmm.access(0, range, DEVICE)).isEqualTo(AccessRights.NONE);
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.copies().fillBytes(0, range, (byte) 1, 1, stream));
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.setAccess(0, range, 8 * MIB, DEVICE, AccessRights.READ_WRITE));
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.setAccess(0, range, 2 * MIB, DEVICE, AccessRights.READ));
        vmm.setAccess(0, range, 4 * MIB, DEVICE, AccessRights.READ);
        assertThat(machine.read(range, stream)).isZero();
        assertFails(CudaResult.INVALID_VALUE, () -> gpu.copies().fillBytes(0, range, (byte) 1, 1, stream));
    }

    @Test
    void aKernelWithoutRightsPoisonsTheContext() {
        vmm.map(0, range, 4 * MIB, handle);
        machine.launch("cistern_write_sequence_u32", stream, range, 1L, 1);
        assertFails(CudaResult.ILLEGAL_ADDRESS, () -> gpu.streams().synchronize(0, stream));
        vmm.unmap(0, range, 4 * MIB);
        vmm.release(0, handle);
    }

    @Test
    void unmappingUnderRunningWorkIsReported() {
        map(range, handle);
        machine.hold(stream);
        gpu.copies().fillBytes(0, range, (byte) 1, MIB, stream);
        vmm.unmap(0, range, 4 * MIB);
        assertThat(gpu.misuses()).extracting(Misuse::kind).containsExactly(Misuse.Kind.UNMAP_WHILE_IN_USE);
        machine.open();
        assertFails(CudaResult.ILLEGAL_ADDRESS, () -> gpu.streams().synchronize(0, stream));
    }

    @Test
    void retainedHandlesNameTheSameMemory() {
        map(range, handle);
        assertThat(vmm.retainHandle(0, range + MIB + 5)).isEqualTo(handle);
        vmm.release(0, handle);
        vmm.release(0, handle);
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.release(0, handle));
    }

    @Test
    void sizesAndHintsAreChecked() {
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.create(MIB, PhysicalMemory.onDevice(0)));
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.reserve(0, MIB, 0, 0));
        assertFails(CudaResult.INVALID_VALUE, () -> vmm.reserve(0, 2 * MIB, 3 * MIB, 0));
        long hint = range + (64L << 30);
        assertThat(vmm.reserve(0, 2 * MIB, 0, hint)).isEqualTo(hint);
        assertThat(vmm.reserve(0, 2 * MIB, 0, hint)).isNotEqualTo(hint);
        assertThat(vmm.reserve(0, 2 * MIB, 1L << 30, 0) % (1L << 30)).isZero();
    }
}
