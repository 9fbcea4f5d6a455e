package io.cistern.caching.internal.growth;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// When a new page is made although others are idle.
class GrowthPolicyTest {
    private static final long MIB = 1L << 20;
    private static final long GIB = 1L << 30;
    private static final long PAGE = 4 * MIB;

    private final GrowthPolicy growthPolicy = new GrowthPolicy(0.08, GIB);

    @Test
    void upToThePeakOfLiveBytesMemoryIsNeededAnyway() {
        growthPolicy.needed(100 * MIB);
        growthPolicy.needed(60 * MIB);
        assertThat(growthPolicy.peakBytes()).as("the most that ever was").isEqualTo(100 * MIB);
        assertThat(growthPolicy.isNeeded(100 * MIB - 1)).isTrue();
        assertThat(growthPolicy.isNeeded(100 * MIB)).isFalse();
    }

    @Test
    void sixtyFourMovesInsideAStreamEarnAPage() {
        growthPolicy.needed(GIB);
        for (int i = 0; i < 63; i++) {
            growthPolicy.moved(PAGE, false);
        }
        assertThat(growthPolicy.isEarned(GIB, PAGE)).isFalse();
        growthPolicy.moved(PAGE, false);
        assertThat(growthPolicy.isEarned(GIB, PAGE)).isTrue();
        assertThat(growthPolicy.isEarned(GIB, PAGE)).as("it was paid for").isFalse();
    }

    @Test
    void oneMoveBetweenStreamsEarnsAPage() {
        growthPolicy.needed(GIB);
        growthPolicy.moved(PAGE, true);
        assertThat(growthPolicy.isEarned(GIB, PAGE)).isTrue();
        assertThat(growthPolicy.isEarned(GIB, PAGE)).isFalse();
    }

    @Test
    void aLargerPageTakesMoreMoves() {
        growthPolicy.needed(GIB);
        growthPolicy.moved(PAGE, true);
        assertThat(growthPolicy.isEarned(GIB, 2 * PAGE)).isFalse();
        growthPolicy.moved(PAGE, true);
        assertThat(growthPolicy.isEarned(GIB, 2 * PAGE)).isTrue();
    }

    @Test
    void nothingIsBoughtAboveTheSlackAndWhatWasEarnedIsKept() {
        growthPolicy.needed(100 * MIB);
        growthPolicy.moved(PAGE, true);
        assertThat(growthPolicy.isEarned(104 * MIB + 1, PAGE))
                .as("8 % over the peak")
                .isFalse();
        assertThat(growthPolicy.isEarned(104 * MIB, PAGE)).isTrue();
        growthPolicy.moved(PAGE, true);
        assertThat(growthPolicy.isEarned(108 * MIB, PAGE)).isFalse();
        growthPolicy.needed(200 * MIB);
        assertThat(growthPolicy.isEarned(200 * MIB, PAGE))
                .as("of a higher peak")
                .isTrue();
    }

    @Test
    void withoutSlackMovesBuyNothing() {
        GrowthPolicy strict = new GrowthPolicy(0, GIB);
        strict.needed(GIB);
        strict.moved(GIB, true);
        assertThat(strict.isEarned(GIB, PAGE)).isFalse();
        assertThat(strict.fitsSmallSlack(GIB, 1)).isFalse();
        assertThat(strict.threadCacheShareBytes()).isZero();
    }

    @Test
    void upToA1024thOfTheDeviceNothingNeedsToMove() {
        assertThat(growthPolicy.isLittle(0, MIB)).isTrue();
        assertThat(growthPolicy.isLittle(1, MIB)).isFalse();
        assertThat(new GrowthPolicy(0, GIB).isLittle(0, 1)).as("without slack").isFalse();
    }

    /// Without having earned anything.
    @ParameterizedTest
    @CsvSource({"1, 1500", "0.08, 1500", "0.015, 1500", "0.01, 1000"})
    void smallBlocksHaveUpToOneAndAHalfPercentOfTheSlack(double slack, long most) {
        GrowthPolicy small = new GrowthPolicy(slack, GIB);
        small.needed(100_000);
        assertThat(small.fitsSmallSlack(100_000, most)).isTrue();
        assertThat(small.fitsSmallSlack(100_000, most + 1)).isFalse();
    }

    @ParameterizedTest
    @CsvSource({"0, 8", "512, 8", "1024, 8", "2048, 16", "131072, 1024"})
    void smallBlocksHaveAShareForThemselves(long peakMebibytes, long shareMebibytes) {
        growthPolicy.needed(peakMebibytes * MIB);
        assertThat(growthPolicy.smallShareBytes()).isEqualTo(shareMebibytes * MIB);
    }

    @ParameterizedTest
    @CsvSource({"0, 48", "6144, 48", "131072, 1024"})
    void threadCachesThatMissOftenMayHaveMore(long peakMebibytes, long shareMebibytes) {
        growthPolicy.needed(peakMebibytes * MIB);
        assertThat(growthPolicy.threadCacheShareBytes()).isEqualTo(shareMebibytes * MIB);
    }

    @Test
    void pagesMoveMuchOnceMoreThanAnEighthOfWhatWasBoughtMoved() {
        assertThat(growthPolicy.movesMuch()).isFalse();
        growthPolicy.bought(8 * PAGE);
        growthPolicy.moved(PAGE, false);
        assertThat(growthPolicy.movesMuch()).isFalse();
        growthPolicy.moved(1, true);
        assertThat(growthPolicy.movesMuch()).isTrue();
        growthPolicy.bought(8 * PAGE);
        assertThat(growthPolicy.movesMuch()).as("more was bought since").isFalse();
    }
}
