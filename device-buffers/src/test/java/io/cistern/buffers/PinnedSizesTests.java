package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/// How much is pinned for a buffer of a size.
final class PinnedSizesTests {
    private static final long MIB = 1 << 20;
    private static final long SEED = Long.getLong("cistern.testkit.seed", 20_260_101L);

    /// Around each power of two and each of its eighths, and drawn ones, up to 4 TiB.
    private static LongStream sizes() {
        LongStream.Builder sizes = LongStream.builder();
        for (int shift = 3; shift < PinnedSizes.MAX_SHIFT; shift++) {
            for (long eighth = 8; eighth <= 16; eighth++) {
                long size = eighth << (shift - 3);
                sizes.add(size - 1).add(size).add(Math.min(size + 1, 1L << PinnedSizes.MAX_SHIFT));
            }
        }
        SplittableRandom random = new SplittableRandom(SEED);
        for (int drawn = 0; drawn < 100_000; drawn++) {
            sizes.add(1 + (random.nextLong(1L << PinnedSizes.MAX_SHIFT) >>> random.nextInt(PinnedSizes.MAX_SHIFT)));
        }
        return sizes.build();
    }

    @Test
    void aLargeBufferPinsAtMostAnEighthMore() {
        sizes().forEach(size -> {
            long pinned = PinnedMemory.pinnedBytes(size);
            assertThat(pinned)
                    .as("bytes for %d", size)
                    .isGreaterThanOrEqualTo(size)
                    .isLessThanOrEqualTo(Math.max(size > MIB ? size + size / 8 : 2 * size, 4096));
            assertThat(pinned % 4096).as("whole pages for %d", size).isZero();
        });
    }

    @Test
    void aBlockServesTheSizesUpToItsOwn() {
        sizes().forEach(size -> {
            int sizeClass = PinnedSizes.sizeClass(size);
            assertThat(sizeClass).isBetween(0, PinnedSizes.COUNT - 1);
            assertThat(PinnedSizes.sizeClass(PinnedSizes.bytes(sizeClass)))
                    .as("of %d", size)
                    .isEqualTo(sizeClass);
            assertThat(sizeClass == 0 || PinnedSizes.bytes(sizeClass - 1) < size)
                    .as("smallest for %d", size)
                    .isTrue();
        });
    }

    @Test
    void soMuchIsPinnedAndCounted() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            PinnedMemory pinned = PinnedMemory.of(memory);
            for (long size : new long[] {1, 1_100_000, 65 * MIB + 1, 1100 * MIB}) {
                try (PinnedBuffer buffer = pinned.allocate(size)) {
                    assertThat(buffer.byteSize()).isEqualTo(size);
                    assertThat(pinned.statistics())
                            .containsEntry("allocated_bytes.current", PinnedMemory.pinnedBytes(size))
                            .containsEntry("active_bytes.current", PinnedMemory.pinnedBytes(size));
                }
                assertThat(pinned.trim()).isEqualTo(PinnedMemory.pinnedBytes(size));
            }
        }
    }
}
