package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.caching.CachingProvider;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.nccl.internal.segment.SegmentRegistry;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.Segment;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Pools that are closed beside a call of a communicator, whose memory goes after it.
final class LateFreeTests {
    private static final long CAPACITY = 64L << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build();

    /// Has all segments registered and lets none go.
    private static final SegmentRegistry.Registrant IN_A_CALL = new SegmentRegistry.Registrant() {
        @Override
        public void tryUpdate() {}

        @Override
        public boolean tryDrop(Segment segment) {
            return false;
        }

        @Override
        public boolean knows(Segment segment) {
            return true;
        }
    };

    @ParameterizedTest
    @CsvSource({"nccl, MEM_UNMAP", "vmm, MEM_UNMAP", "vmm, MEM_RELEASE"})
    void memoryThatTheDriverRefusesOnceGoesNevertheless(String spec, DriverCall call) {
        try (DeviceMemory memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(
                        List.of(new CachingProvider()), List.of(new VmmSourceProvider(), new NcclSourceProvider())))
                .open()) {
            MemoryPool pool = memory.pools().open(spec);
            memory.free(pool.allocate(2 << 20, 0, 0), 0);
            SegmentRegistry registry = pool.extension(SegmentRegistry.Owner.class)
                    .orElseThrow()
                    .registries()
                    .getFirst();
            registry.add(IN_A_CALL);
            pool.close();
            assertThat(gpu.memory().freeBytes(0)).isLessThan(CAPACITY);
            gpu.faults().failOn(call, 0, 1, CudaResult.UNKNOWN);
            registry.remove(IN_A_CALL);
            assertThat(gpu.faults().failedCalls()).isOne();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
        }
        gpu.close();
    }
}
