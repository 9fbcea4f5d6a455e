package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

final class MemoryLevelsTests {
    private static final long PAGE = 32L << 20;

    @Test
    void theGroundIsOnePage() {
        assertThat(MemoryLevels.of(0)).isZero();
        assertThat(MemoryLevels.of(1)).isZero();
        assertThat(MemoryLevels.of(PAGE)).isZero();
        assertThat(MemoryLevels.of(PAGE + 1)).isEqualTo(1);
        assertThat(MemoryLevels.topBytes(0)).isEqualTo(PAGE);
    }

    @Test
    void levelsFollowOneAnotherAndAreNarrow() {
        for (int level = 1; level < MemoryLevels.COUNT - 1; level++) {
            long bottom = MemoryLevels.bottomBytes(level);
            assertThat(MemoryLevels.topBytes(level - 1)).isEqualTo(bottom);
            assertThat(MemoryLevels.topBytes(level)).isGreaterThan(bottom).isLessThanOrEqualTo(bottom + bottom / 16);
            assertThat(MemoryLevels.of(bottom)).isEqualTo(level - 1);
            assertThat(MemoryLevels.of(bottom + 1)).isEqualTo(level);
        }
    }

    @Test
    void everySizeIsInItsLevel() {
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < 10_000; i++) {
            long byteSize = 1 + random.nextLong(1L << (20 + random.nextInt(21)));
            int level = MemoryLevels.of(byteSize);
            assertThat(byteSize)
                    .as("seed 1, number %d", i)
                    .isGreaterThan(MemoryLevels.bottomBytes(level))
                    .isLessThanOrEqualTo(MemoryLevels.topBytes(level));
        }
    }

    @Test
    void theLastLevelHasAllThatIsAboveATebibyte() {
        assertThat(MemoryLevels.bottomBytes(MemoryLevels.COUNT - 1)).isEqualTo(1L << 40);
        assertThat(MemoryLevels.of(Long.MAX_VALUE)).isEqualTo(MemoryLevels.COUNT - 1);
        assertThat(MemoryLevels.topBytes(MemoryLevels.COUNT - 1)).isEqualTo(Long.MAX_VALUE);
    }
}
