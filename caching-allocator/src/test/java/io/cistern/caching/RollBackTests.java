package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Each driver call of a growth fails, early and late, with pages bought and pages moved: nothing is lost, nothing
/// is counted wrongly, and the next allocation works.
class RollBackTests {
    private static final long MIB = 1L << 20;

    @ParameterizedTest(name = "{0} after {1}, then {2} times")
    @CsvSource({
        "MEM_CREATE, 0, 1",
        "MEM_CREATE, 5, 1",
        "MEM_CREATE, 0, 1000",
        "MEM_MAP, 0, 1",
        "MEM_MAP, 4, 1",
        "MEM_MAP, 12, 1",
        "MEM_MAP, 0, 1000",
        "MEM_SET_ACCESS, 0, 1",
        "MEM_SET_ACCESS, 0, 1000",
        "EVENT_CREATE, 0, 1",
        "EVENT_RECORD, 0, 1",
        "STREAM_WAIT_EVENT, 0, 1",
        "MEM_ADDRESS_RESERVE, 0, 1"
    })
    void aFailedGrowthLeavesEverythingAsItWas(DriverCall call, int after, int times) {
        SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(512 * MIB).build();
        GpuContext context = new GpuContext(gpu);
        CachingAllocator caching = context.open(PageReuse.WAIT, false);
        long a = gpu.streams().create(0);
        long b = gpu.streams().create(0);
        long idle = context.allocate(caching, 60 * MIB, a);
        gpu.copies().fillBytes(0, idle, (byte) 1, 60 * MIB, a);
        context.free(caching, idle, a);

        gpu.faults().failOn(call, after, times, CudaResult.UNKNOWN);
        long block = tryToAllocate(context, caching, 100 * MIB, b);
        gpu.faults().clear();
        caching.checkInvariants();
        assertThat(gpu.memory().freeBytes(0))
                .isEqualTo(512 * MIB - caching.reservedBytes(0).orElseThrow());
        if (block == 0) {
            block = context.allocate(caching, 100 * MIB, b);
        }
        gpu.copies().fillBytes(0, block, (byte) 2, 100 * MIB, b);
        assertThat(context.read(block + 100 * MIB - 1, b)).isEqualTo((byte) 2);
        context.free(caching, block, b);
        caching.checkInvariants();
        caching.close();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(512 * MIB);
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @ParameterizedTest(name = "{0} fails, and the roll-back too")
    @CsvSource({"MEM_MAP, 12", "MEM_SET_ACCESS, 0"})
    void whatARollBackCouldNotTakeAwayGoesLater(DriverCall call, int after) {
        SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(512 * MIB).build();
        GpuContext context = new GpuContext(gpu);
        CachingAllocator caching = context.open(PageReuse.WAIT, false);
        long a = gpu.streams().create(0);
        long b = gpu.streams().create(0);
        context.free(caching, context.allocate(caching, 60 * MIB, a), a);

        gpu.faults().failOn(call, after, 1, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 3, 2, CudaResult.UNKNOWN);
        long block = tryToAllocate(context, caching, 100 * MIB, b);
        gpu.faults().clear();
        assertThat(block).isZero();
        caching.checkInvariants();
        block = context.allocate(caching, 100 * MIB, b);
        context.free(caching, block, b);
        caching.trim(0, 0);
        caching.checkInvariants();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(512 * MIB);
        caching.close();
        gpu.close();
    }

    private static long tryToAllocate(GpuContext context, CachingAllocator caching, long byteSize, long stream) {
        try {
            return context.allocate(caching, byteSize, stream);
        } catch (DeviceOutOfMemoryException | CudaException expected) {
            return 0;
        }
    }
}
