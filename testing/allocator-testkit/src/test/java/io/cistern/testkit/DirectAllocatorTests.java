package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What the direct allocator does with a free that the driver refuses.
class DirectAllocatorTests {
    private static final int ALWAYS = Integer.MAX_VALUE;
    private static final long BYTES = 8L << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(DiscoveredCatalog.find()).open();
    private final Allocator direct = memory.open("direct");
    private final long freeBytes = gpu.memory().freeBytes(0);
    private final long refused = direct.allocate(BYTES, 0, 0);

    @AfterEach
    void close() {
        gpu.close();
    }

    private void refuse(int times, CudaResult result) {
        gpu.faults().failOn(DriverCall.MEM_FREE, 0, times, result);
        assertThatCode(() -> memory.free(refused, 0)).doesNotThrowAnyException();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes - BYTES);
    }

    @Test
    void theNextAllocationTriesARefusedFreeAgain() {
        refuse(1, CudaResult.UNKNOWN);
        memory.free(direct.allocate(BYTES, 0, 0), 0);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
    }

    @Test
    void trimTriesARefusedFreeAgainAndTellsItsBytes() {
        refuse(2, CudaResult.OUT_OF_MEMORY);
        assertThat(direct.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes()).isZero();
        assertThat(direct.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes()).isEqualTo(BYTES);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
    }

    @Test
    void trimTellsNoBytesOfAnotherDevice() {
        refuse(1, CudaResult.OUT_OF_MEMORY);
        assertThat(direct.trim(1, 0, TrimMode.WITHOUT_WAITING).returnedBytes()).isZero();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
    }

    @Test
    void closeTriesARefusedFreeAgain() {
        refuse(1, CudaResult.UNKNOWN);
        memory.close();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
    }

    @Test
    void anAddressThatTheDriverDoesNotKnowIsNotTriedAgain() {
        refuse(1, CudaResult.INVALID_VALUE);
        long calls = gpu.calls().of(DriverCall.MEM_FREE);
        direct.trim(0, 0, TrimMode.WITHOUT_WAITING);
        assertThat(gpu.calls().of(DriverCall.MEM_FREE)).isEqualTo(calls);
    }

    @Test
    void aDriverThatNeverTakesAnythingBackDoesNotStopTheWork() {
        refuse(ALWAYS, CudaResult.UNKNOWN);
        for (int i = 0; i < 20; i++) {
            memory.free(direct.allocate(BYTES, 0, 0), 0);
        }
        gpu.faults().clear();
        direct.trim(0, 0, TrimMode.WITHOUT_WAITING);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
    }
}
