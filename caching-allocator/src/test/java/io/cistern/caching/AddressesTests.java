package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Addresses are many, but not without end: each stream reserves more of them than it will use.
class AddressesTests {
    private static final long MIB = 1L << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(140L << 30).build();
    private final GpuContext context = new GpuContext(gpu);
    private final CachingAllocator caching = context.open(PageReuse.WAIT, false);

    @AfterEach
    void nothingIsLeft() {
        gpu.faults().clear();
        caching.checkInvariants();
        Map.copyOf(context.live).forEach((address, stream) -> context.free(caching, address, stream));
        caching.close();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(140L << 30);
        gpu.close();
    }

    @Test
    void hundredsOfStreamsShareThem() {
        for (int i = 0; i < 400; i++) {
            long stream = gpu.streams().create(0);
            context.allocate(caching, 3 * MIB, stream);
            context.allocate(caching, 10 * MIB, stream);
        }
        assertThat(context.live).hasSize(800);
    }

    @Test
    void whereTheDriverHasFewLeftFewerDo() {
        long stream = gpu.streams().create(0);
        gpu.faults().failOn(DriverCall.MEM_ADDRESS_RESERVE, 0, 3, CudaResult.OUT_OF_MEMORY);
        context.allocate(caching, 10 * MIB, stream);
        assertThat(context.live).hasSize(1);
    }

    @Test
    void whereTheDriverHasNoneMemoryRunsOut() {
        long stream = gpu.streams().create(0);
        gpu.faults().failOn(DriverCall.MEM_ADDRESS_RESERVE, 0, Integer.MAX_VALUE, CudaResult.OUT_OF_MEMORY);
        assertThatThrownBy(() -> context.allocate(caching, 10 * MIB, stream))
                .isInstanceOf(DeviceOutOfMemoryException.class);
    }
}
