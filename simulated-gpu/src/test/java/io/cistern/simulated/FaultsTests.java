package io.cistern.simulated;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What tests ask of the machine: contexts that are lost, and what is left at the end.
final class FaultsTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();

    @AfterEach
    void close() {
        gpu.close();
    }

    @Test
    void aLostContextFailsEachLaterCallOfItsDevice() {
        gpu.faults().loseContextOn(DriverCall.MEM_ALLOC, 1, CudaResult.ECC_UNCORRECTABLE);
        gpu.memory().allocate(0, 512);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> gpu.memory().allocate(0, 512))
                .returns(CudaResult.ECC_UNCORRECTABLE, CudaException::result);
        gpu.faults().clear();
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> gpu.streams().create(0))
                .returns(CudaResult.ECC_UNCORRECTABLE, CudaException::result);
        assertThat(gpu.memory().allocate(1, 512)).isNotZero();
    }

    @Test
    void aResultThatEndsNoContextCannotLoseOne() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> gpu.faults().loseContextOn(DriverCall.MEM_ALLOC, 0, CudaResult.OUT_OF_MEMORY));
    }

    @Test
    void whatProgramsHoldIsCountedUntilTheyGiveItBack() {
        Map<String, Long> before = gpu.heldObjects();
        long stream = gpu.streams().create(0);
        long event = gpu.events().create(0);
        long addresses = gpu.virtualMemory().reserve(0, 2 << 20, 0, 0);
        var pinned = gpu.memory().allocateHost(0, 4096);
        assertThat(gpu.heldObjects())
                .containsEntry("streams", 1L)
                .containsEntry("events", 1L)
                .containsEntry("reservations", 1L)
                .containsEntry("pinned", 1L);
        gpu.streams().destroy(0, stream);
        gpu.events().destroy(0, event);
        gpu.virtualMemory().freeReservation(0, addresses, 2 << 20);
        gpu.memory().freeHost(0, pinned);
        assertThat(gpu.heldObjects()).isEqualTo(before);
    }
}
