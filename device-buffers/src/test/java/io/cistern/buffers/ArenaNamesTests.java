package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.Test;

/// Arenas that are each named after a task, of which there is no end.
class ArenaNamesTests {
    @Test
    void sizesAreRememberedForTheNamesThatWereAskedForLast() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            BufferSupport buffers = BufferSupport.of(memory);
            ArenaSizes often = buffers.arenaSizes("step");
            ArenaSizes once = buffers.arenaSizes("task");
            for (int i = 0; i < BufferSupport.MAX_ARENA_NAMES; i++) {
                assertThat(buffers.arenaSizes("task-" + i)).isNotSameAs(once);
                assertThat(buffers.arenaSizes("step")).isSameAs(often);
            }
            assertThat(buffers.arenaSizes("task")).isNotSameAs(once);
        }
    }
}
