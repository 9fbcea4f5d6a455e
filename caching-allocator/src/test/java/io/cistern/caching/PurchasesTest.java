package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// When a new page is made although others are idle.
class PurchasesTest {
    private static final long MIB = 1L << 20;
    private static final long GIB = 1L << 30;
    private static final long PAGE = 4 * MIB;

    private final Purchases purchases = new Purchases(0.08, GIB);

    @Test
    void upToThePeakOfLiveBytesMemoryIsNeededAnyway() {
        purchases.needed(100 * MIB);
        purchases.needed(60 * MIB);
        assertThat(purchases.peakBytes()).as("the most that ever was").isEqualTo(100 * MIB);
        assertThat(purchases.isNeeded(100 * MIB - 1)).isTrue();
        assertThat(purchases.isNeeded(100 * MIB)).isFalse();
    }

    @Test
    void sixtyFourMovesInsideAStreamEarnAPage() {
        purchases.needed(GIB);
        for (int i = 0; i < 63; i++) {
            purchases.moved(PAGE, false);
        }
        assertThat(purchases.isEarned(GIB, PAGE)).isFalse();
        purchases.moved(PAGE, false);
        assertThat(purchases.isEarned(GIB, PAGE)).isTrue();
        assertThat(purchases.isEarned(GIB, PAGE)).as("it was paid for").isFalse();
    }

    @Test
    void oneMoveBetweenStreamsEarnsAPage() {
        purchases.needed(GIB);
        purchases.moved(PAGE, true);
        assertThat(purchases.isEarned(GIB, PAGE)).isTrue();
        assertThat(purchases.isEarned(GIB, PAGE)).isFalse();
    }

    @Test
    void aLargerPageTakesMoreMoves() {
        purchases.needed(GIB);
        purchases.moved(PAGE, true);
        assertThat(purchases.isEarned(GIB, 2 * PAGE)).isFalse();
        purchases.moved(PAGE, true);
        assertThat(purchases.isEarned(GIB, 2 * PAGE)).isTrue();
    }

    @Test
    void nothingIsBoughtAboveTheSlackAndWhatWasEarnedIsKept() {
        purchases.needed(100 * MIB);
        purchases.moved(PAGE, true);
        assertThat(purchases.isEarned(104 * MIB + 1, PAGE))
                .as("8 % over the peak")
                .isFalse();
        assertThat(purchases.isEarned(104 * MIB, PAGE)).isTrue();
        purchases.moved(PAGE, true);
        assertThat(purchases.isEarned(108 * MIB, PAGE)).isFalse();
        purchases.needed(200 * MIB);
        assertThat(purchases.isEarned(200 * MIB, PAGE)).as("of a higher peak").isTrue();
    }

    @Test
    void withoutSlackMovesBuyNothing() {
        Purchases strict = new Purchases(0, GIB);
        strict.needed(GIB);
        strict.moved(GIB, true);
        assertThat(strict.isEarned(GIB, PAGE)).isFalse();
        assertThat(strict.fitsSmallSlack(GIB, 1)).isFalse();
        assertThat(strict.laneShareBytes()).isZero();
    }

    @Test
    void upToA1024thOfTheDeviceNothingNeedsToMove() {
        assertThat(purchases.isLittle(0, MIB)).isTrue();
        assertThat(purchases.isLittle(1, MIB)).isFalse();
        assertThat(new Purchases(0, GIB).isLittle(0, 1)).as("without slack").isFalse();
    }

    /// Without having earned anything.
    @ParameterizedTest
    @CsvSource({"1, 1500", "0.08, 1500", "0.015, 1500", "0.01, 1000"})
    void smallBlocksHaveUpToOneAndAHalfPercentOfTheSlack(double slack, long most) {
        Purchases small = new Purchases(slack, GIB);
        small.needed(100_000);
        assertThat(small.fitsSmallSlack(100_000, most)).isTrue();
        assertThat(small.fitsSmallSlack(100_000, most + 1)).isFalse();
    }

    @ParameterizedTest
    @CsvSource({"0, 8", "512, 8", "1024, 8", "2048, 16", "131072, 1024"})
    void smallBlocksHaveAShareForThemselves(long peakMebibytes, long shareMebibytes) {
        purchases.needed(peakMebibytes * MIB);
        assertThat(purchases.smallShareBytes()).isEqualTo(shareMebibytes * MIB);
    }

    @ParameterizedTest
    @CsvSource({"0, 48", "6144, 48", "131072, 1024"})
    void lanesThatMissOftenMayHaveMore(long peakMebibytes, long shareMebibytes) {
        purchases.needed(peakMebibytes * MIB);
        assertThat(purchases.laneShareBytes()).isEqualTo(shareMebibytes * MIB);
    }

    @Test
    void pagesMoveMuchOnceMoreThanAnEighthOfWhatWasBoughtMoved() {
        assertThat(purchases.movesMuch()).isFalse();
        purchases.bought(8 * PAGE);
        purchases.moved(PAGE, false);
        assertThat(purchases.movesMuch()).isFalse();
        purchases.moved(1, true);
        assertThat(purchases.movesMuch()).isTrue();
        purchases.bought(8 * PAGE);
        assertThat(purchases.movesMuch()).as("more was bought since").isFalse();
    }
}
