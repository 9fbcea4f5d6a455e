package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Where a segment that blocks share finds no room, one does that is just large enough.
class LittleRoomTests {
    private static final long MIB = 1L << 20;

    @ParameterizedTest
    @ValueSource(strings = {"caching:expandable_segments=false", "caching:source=linear"})
    void aRequestIsServedThatHasRoomAlone(String spec) {
        try (SimulatedCaching caching = new SimulatedCaching(10 * MIB, spec)) {
            long stream = caching.newStream();

            long block = caching.allocate(5 * MIB, stream);

            assertThat(caching.reservedBytes()).isEqualTo(6 * MIB);
            caching.free(block, stream);
            caching.trim();
        }
    }

    /// The cap of a program is no less room than a device.
    @ParameterizedTest
    @ValueSource(strings = {"", ",throw_on_cudamalloc_oom=true"})
    void soIsOneBelowACap(String more) {
        String spec = "caching:expandable_segments=false,per_process_memory_fraction=0.1" + more;
        try (SimulatedCaching caching = new SimulatedCaching(100 * MIB, spec)) {
            long stream = caching.newStream();
            caching.free(caching.allocate(9 * MIB, stream), stream);
            caching.trim();
        }
    }

    /// A segment of 20 MiB is more than a sixteenth of this device, from where on blocks are kept whole.
    @ParameterizedTest
    @ValueSource(strings = {"caching:expandable_segments=false", "caching:source=linear"})
    void blocksShareSegmentsOnASmallDevice(String spec) {
        try (SimulatedCaching caching = new SimulatedCaching(256 * MIB, spec)) {
            long stream = caching.newStream();
            List<Long> blocks = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                blocks.add(caching.allocate(2 * MIB + i * 4096, stream));
            }

            assertThat(caching.reservedBytes()).isLessThanOrEqualTo(140 * MIB);
            blocks.forEach(block -> caching.free(block, stream));
            caching.trim();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:expandable_segments=false", "caching:source=linear"})
    void anyNumberOfEqualBlocksFillsThreeQuarters(String spec) {
        long deviceBytes = 448 * MIB;
        try (SimulatedCaching caching = new SimulatedCaching(deviceBytes, spec)) {
            long stream = caching.newStream();
            List<Long> blocks = new ArrayList<>();
            for (int count = 1; count <= 128; count++) {
                long byteSize = deviceBytes * 3 / 4 / count;
                for (int i = 0; i < count; i++) {
                    blocks.add(caching.allocate(byteSize, stream));
                }
                blocks.forEach(block -> caching.free(block, stream));
                blocks.clear();
                caching.trim();
            }
        }
    }
}
