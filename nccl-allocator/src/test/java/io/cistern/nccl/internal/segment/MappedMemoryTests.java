package io.cistern.nccl.internal.segment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Physical memory at addresses of its own, and what a failure leaves.
class MappedMemoryTests {
    private static final long MIB = 1L << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(64 * MIB).devices(2).build();
    private final MappedMemory memory = new MappedMemory(gpu);

    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {"MEM_CREATE", "MEM_ADDRESS_RESERVE", "MEM_MAP", "MEM_SET_ACCESS"})
    void aFailureAtEachStepTakesBackAllBefore(DriverCall call) {
        gpu.faults().failOn(call, 0, 1, CudaResult.NOT_PERMITTED);
        assertThatThrownBy(() -> memory.allocate(0, 3 * MIB, PhysicalMemory.onDevice(0)))
                .isInstanceOf(CudaException.class);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(64 * MIB);
        assertThat(gpu.calls().of(DriverCall.MEM_ADDRESS_FREE))
                .isEqualTo(call == DriverCall.MEM_MAP || call == DriverCall.MEM_SET_ACCESS ? 1 : 0);
        memory.free(memory.allocate(0, 3 * MIB, PhysicalMemory.onDevice(0)));
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(64 * MIB);
    }

    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {"MEM_UNMAP", "MEM_RELEASE"})
    void aFailureWhoseUndoIsRefusedOnceTakesBackAll(DriverCall undo) {
        gpu.faults().failOn(DriverCall.MEM_SET_ACCESS, 0, 1, CudaResult.NOT_PERMITTED);
        gpu.faults().failOn(undo, 0, 1, CudaResult.NOT_PERMITTED);
        assertThatThrownBy(() -> memory.allocate(0, 3 * MIB, PhysicalMemory.onDevice(0)))
                .isInstanceOf(CudaException.class);
        assertThat(gpu.heldObjects()).doesNotContainKeys("physical", "reservations");
    }

    @Test
    void addressesGoBackIfTheMemoryCannot() {
        long address = memory.allocate(0, 3 * MIB, PhysicalMemory.onDevice(0));
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, Integer.MAX_VALUE, CudaResult.NOT_PERMITTED);

        memory.free(address);

        assertThat(gpu.calls().of(DriverCall.MEM_ADDRESS_FREE)).isEqualTo(1);
    }

    @Test
    void everyDeviceThatCanReachItMay() {
        assertThat(MappedMemory.accessors(gpu, 1)).hasSize(2);
    }
}
