package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What a store counts, and what a buffer says of itself.
final class SpillCountsTests {
    private static final long MIB = 1 << 20;

    @TempDir
    private Path folder;

    @Test
    void eachMoveIsCountedWithItsBytes() {
        SpillCounts counts = new SpillCounts();
        for (long byteSize : new long[] {100, 30, 7}) {
            counts.moved(SpillPlace.CLOSED, SpillPlace.DEVICE, byteSize);
        }
        assertThat(counts.statistics()).isEqualTo(new SpillStatistics(137, 0, 0, 0, 0, 0, 0, 0, 0, 0));
        counts.moved(SpillPlace.DEVICE, SpillPlace.HOST, 100);
        counts.moved(SpillPlace.DEVICE, SpillPlace.FILE, 30);
        assertThat(counts.statistics()).isEqualTo(new SpillStatistics(7, 100, 30, 2, 130, 1, 30, 0, 0, 0));
        counts.moved(SpillPlace.HOST, SpillPlace.FILE, 100);
        assertThat(counts.statistics()).isEqualTo(new SpillStatistics(7, 0, 130, 2, 130, 2, 130, 0, 0, 0));
        counts.moved(SpillPlace.FILE, SpillPlace.DEVICE, 100);
        counts.moved(SpillPlace.FILE, SpillPlace.DEVICE, 30);
        assertThat(counts.statistics()).isEqualTo(new SpillStatistics(137, 0, 0, 2, 130, 2, 130, 2, 130, 0));
        counts.failed();
        counts.failed();
        counts.moved(SpillPlace.DEVICE, SpillPlace.CLOSED, 7);
        assertThat(counts.statistics()).isEqualTo(new SpillStatistics(130, 0, 0, 2, 130, 2, 130, 2, 130, 2));
    }

    @Test
    void aBufferTellsWhatItIsAndWhereItsBytesAre() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(SmallGpu.catalog()).open();
                SpillStore store = SpillStore.open(memory, 2 * MIB, folder)) {
            memory.setCurrent("direct");
            long stream = gpu.streams().create(1);
            SpillableBuffer first = store.allocate(MIB, 1, stream, 3);
            SpillableBuffer second = store.allocate(MIB, 1, stream, 3);
            assertThat(first.byteSize()).isEqualTo(MIB);
            assertThat(first.device()).isEqualTo(1);
            assertThat(first.priority()).isEqualTo(3);
            assertThat(first).hasToString("SpillableBuffer[" + MIB + " bytes, device 1, DEVICE]");
            assertThat(store.spill(1, MIB)).as("one is enough").isEqualTo(MIB);
            assertThat(first).hasToString("SpillableBuffer[" + MIB + " bytes, device 1, HOST]");
            assertThat(second.place()).isEqualTo(SpillPlace.DEVICE);
            assertThat(store.spill(0, MIB)).isZero();
            store.allocate(1, 1, stream, 0).close();
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> store.allocate(0, 1, stream, 0))
                    .withMessage("byteSize: 0, must be at least 1");
        }
    }
}
