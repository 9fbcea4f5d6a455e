package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A store without an arbiter: a reclaim step, for whatever allocator has run out.
final class SpillStepTests {
    private static final long SIZE = 16L << 20;

    @TempDir
    private Path folder;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(4 * SIZE).build();
    private final long stream = gpu.streams().create(0);

    @AfterEach
    void close() {
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private DeviceMemory open(Set<ReclaimStep> steps) {
        return DeviceMemory.builder(gpu)
                .catalog(SmallGpu.catalog())
                .reclaimSteps(steps)
                .open();
    }

    @Test
    void buffersLeaveForWhateverAllocatorHasRunOut() {
        for (String spec : new String[] {"caching", "direct"}) {
            try (DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
                    SpillStore store = SpillStore.open(memory, 8 * SIZE, folder)) {
                memory.setCurrent(spec);
                List<SpillableBuffer> buffers = new ArrayList<>();
                for (int i = 0; i < 8; i++) {
                    buffers.add(store.allocate(SIZE, 0, stream, 0));
                }
                assertThat(buffers)
                        .filteredOn(each -> each.place() == SpillPlace.HOST)
                        .hasSize(4);
            }
        }
    }

    @Test
    void aStepThatIsSwitchedOffIsNotTaken() {
        try (DeviceMemory memory = open(EnumSet.complementOf(EnumSet.of(ReclaimStep.SPILL)));
                SpillStore store = SpillStore.open(memory, 8 * SIZE, folder)) {
            memory.setCurrent("caching");
            for (int i = 0; i < 4; i++) {
                assertThat(store.allocate(SIZE, 0, stream, 0).place()).isEqualTo(SpillPlace.DEVICE);
            }
            assertThatThrownBy(() -> store.allocate(SIZE, 0, stream, 0))
                    .isInstanceOfSatisfying(
                            DeviceOutOfMemoryException.class,
                            full -> assertThat(full.steps())
                                    .extracting(TriedStep::step)
                                    .doesNotContain(ReclaimStep.SPILL));
        }
    }
}
