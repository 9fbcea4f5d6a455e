package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A copy of a wrong size is refused with both sizes.
class CopySizesTests {
    private static final MemorySegment LONG = MemorySegment.ofArray(new float[100]);
    private static final MemorySegment SHORT = MemorySegment.ofArray(new float[1]);

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(64 << 20).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
            .open();
    private DeviceBuffer small;
    private DeviceBuffer large;

    @BeforeEach
    void allocate() {
        small = DeviceBuffer.allocate(memory, 16, 0, 0);
        large = DeviceBuffer.allocate(memory, 400, 0, 0);
    }

    @AfterEach
    void close() {
        small.close();
        large.close();
        memory.close();
        gpu.close();
    }

    @Test
    void aCopyTellsBothSizes() {
        assertRefused(() -> small.copyFrom(LONG), "source has 400 bytes, but buffer only 16");
        assertRefused(() -> small.copyTo(SHORT), "buffer has 16 bytes, but target only 4");
        assertRefused(() -> small.copyFrom(large), "source has 400 bytes, but buffer only 16");
    }

    @Test
    void soDoesACopyInABatch() {
        CopyBatch batch = new CopyBatch();
        assertRefused(() -> batch.toDevice(small, LONG), "source has 400 bytes, but buffer only 16");
        assertRefused(() -> batch.toHost(SHORT, small), "buffer has 16 bytes, but target only 4");
        assertRefused(() -> batch.onDevice(small, large), "source has 400 bytes, but buffer only 16");
    }

    @Test
    void rowsTellWhatTheyTake() {
        DeviceRows rows = large.rows(0, 100, 50, 4);

        assertRefused(
                () -> rows.copyFrom(SHORT, 50, 0, CopyMode.BLOCKING), "source has 4 bytes, but its 4 rows take 200");
        assertRefused(() -> rows.copyTo(SHORT, 60, 0), "target has 4 bytes, but its 4 rows take 230");
    }

    @Test
    void rowsBeyondAllAddressesAreNotInside() {
        for (long much : new long[] {1L << 40, Long.MAX_VALUE / 2 + 1, Long.MAX_VALUE}) {
            assertThatThrownBy(() -> large.rows(0, much, 1, much)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> large.rows(much, 1, 1, much)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> large.rows(0, much, much, 2)).isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    private static void assertRefused(ThrowingCallable copy, String message) {
        assertThatThrownBy(copy).isInstanceOf(IndexOutOfBoundsException.class).hasMessage(message);
    }
}
