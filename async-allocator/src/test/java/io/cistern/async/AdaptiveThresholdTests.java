package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

/// The rule alone: what it holds and gives back, and when.
final class AdaptiveThresholdTests {
    private static final long GIB = 1L << 30;
    private static final long MILLI = 1_000_000;
    private static final long PEAK = 8 * GIB;

    private final ModelledPool pool = new ModelledPool();

    /// Half of a step at the peak, half at the ground.
    private void steps(int count, long peakBytes, long groundBytes, long stepNanos) {
        for (int step = 0; step < count; step++) {
            pool.use(peakBytes);
            pool.pass(stepNanos / 2);
            pool.use(groundBytes);
            pool.pass(stepNanos / 2);
        }
    }

    @Test
    void allIsKeptUntilThePriceOfAllIsSaved() {
        steps(9, PEAK, GIB, 40 * MILLI);
        assertThat(pool.nanos()).isLessThan(pool.rule().limitNanos());
        assertThat(pool.rule().thresholdBytes()).isEqualTo(Long.MAX_VALUE);
        assertThat(pool.givenBackBytes()).isZero();
    }

    @Test
    void aWorkloadThatRepeatsItselfComesToRest() {
        steps(200, PEAK, GIB, 100 * MILLI);
        long before = pool.givenBackBytes();
        steps(500, PEAK, GIB, 100 * MILLI);
        assertThat(pool.givenBackBytes()).isEqualTo(before);
        assertThat(pool.reservedBytes()).isEqualTo(PEAK);
    }

    @Test
    void whatComesAgainIsBoughtAgainAtMostOnceADoubling() {
        pool.use(PEAK);
        pool.pass(2 * pool.rule().limitNanos() + 1000 * MILLI);
        double most = 1 + Math.log((double) pool.rule().limitNanos() / MILLI) / Math.log(2);
        for (long step = MILLI; step < pool.rule().limitNanos(); step = step * 5 / 4) {
            steps(3, PEAK, GIB, 2 * step);
        }
        assertThat(pool.givenBackBytes()).isBetween(1L, (long) (most * (PEAK - GIB)));
    }

    @Test
    void afterAChangeOfPhaseWhatIsHeldFallsWithinTwoPhases() {
        steps(40, PEAK, GIB, 100 * MILLI);
        long phase = 40 * 100 * MILLI;
        long begin = pool.nanos();
        while (pool.reservedBytes() > 2 * GIB * 11 / 10 && pool.nanos() - begin < 2 * phase) {
            steps(1, 2 * GIB, GIB, 20 * MILLI);
        }
        assertThat(pool.reservedBytes()).isLessThanOrEqualTo(2 * GIB * 11 / 10);
        assertThat(pool.nanos() - begin).isLessThan(phase / 10);
        steps(50, 2 * GIB, GIB, 20 * MILLI);
        assertThat(pool.rule().thresholdBytes()).isBetween(2 * GIB, 2 * GIB * 11 / 10);
    }

    @Test
    void phasesThatTakeTurnsCostEachTurnOneRefillAndNoMore() {
        steps(40, PEAK, GIB, 100 * MILLI);
        for (int turn = 0; turn < 4; turn++) {
            steps(100, 2 * GIB, GIB, 20 * MILLI);
            long before = pool.givenBackBytes();
            steps(20, PEAK, GIB, 100 * MILLI);
            assertThat(pool.givenBackBytes()).isEqualTo(before);
        }
        assertThat((double) pool.givenBackBytes()).isCloseTo(4.0 * (PEAK - 2 * GIB), within(1.0 * GIB));
    }

    @Test
    void aServiceWhosePausesAreAllTooLongHoldsNothingOverThem() {
        pool.use(GIB);
        pool.pass(1000 * MILLI);
        for (int request = 0; request < 20; request++) {
            pool.use(PEAK);
            pool.pass(50 * MILLI);
            pool.use(GIB);
            pool.pass(ModelledPool.TICK_NANOS); // The synchronisation at its end.
            if (request > 0) {
                assertThat(pool.reservedBytes()).isEqualTo(GIB);
            }
            pool.sleep(3_000 * MILLI);
        }
    }

    @Test
    void aPauseIsNoGapWhileTheMemoryIsLive() {
        for (int turn = 0; turn < 20; turn++) {
            pool.use(PEAK);
            pool.sleep(300 * MILLI);
            pool.pass(ModelledPool.TICK_NANOS);
        }
        pool.use(GIB);
        pool.pass(2 * MILLI);
        assertThat(pool.reservedBytes()).isEqualTo(GIB);
    }

    @Test
    void whatWasHeldThroughAPauseIsNotGivenBackWhenTheProgramGoesOn() {
        steps(40, PEAK, GIB, 40 * MILLI);
        for (int turn = 0; turn < 10; turn++) {
            pool.sleep(5_000 * MILLI);
            steps(40, PEAK, GIB, 40 * MILLI);
        }
        assertThat(pool.givenBackBytes()).isZero();
    }

    @Test
    void whatWasHeldIntoAPauseIsHeldForTheRestOfItsWindow() {
        steps(40, PEAK, GIB, 40 * MILLI);
        pool.sleep(5_000 * MILLI);
        pool.pass(10 * MILLI);
        assertThat(pool.reservedBytes()).isEqualTo(PEAK);
        pool.pass(40 * MILLI);
        assertThat(pool.reservedBytes()).isEqualTo(GIB);
    }

    @Test
    void itIsGivenBackIfTheProgramGoesOnWithLess() {
        steps(40, PEAK, GIB, 40 * MILLI);
        pool.sleep(5_000 * MILLI);
        steps(10, 2 * GIB, GIB, 40 * MILLI);
        assertThat(pool.reservedBytes()).isLessThanOrEqualTo(2 * GIB * 11 / 10);
    }

    @Test
    void aProgramThatHardlyCallsKeepsNothing() {
        steps(40, PEAK, GIB, 40 * MILLI);
        for (int call = 0; call < 3; call++) {
            pool.sleep(5_000 * MILLI);
            pool.pass(1);
        }
        assertThat(pool.reservedBytes()).isEqualTo(GIB);
    }

    @Test
    void memoryThatFragmentationTakesIsHeldWithTheUseThatTookIt() {
        for (int turn = 0; turn < 100; turn++) {
            pool.use(4 * GIB);
            pool.needAtLeast(5 * GIB);
            pool.pass(20 * MILLI);
            pool.use(GIB);
            pool.pass(20 * MILLI);
        }
        assertThat(pool.reservedBytes()).isEqualTo(5 * GIB);
        steps(50, 2 * GIB, GIB, 20 * MILLI);
        assertThat(pool.reservedBytes()).isBetween(2 * GIB, 2 * GIB * 11 / 10);
    }

    @Test
    void aPoolOfFewLargePiecesKeepsAll() {
        pool.rule().freed(PEAK * 2 / 5);
        steps(40, PEAK, GIB, 100 * MILLI);
        steps(40, 2 * GIB, GIB, 100 * MILLI);
        assertThat(pool.givenBackBytes()).isZero();
    }

    @Test
    void onePieceThatIsAllThereIsGoesBack() {
        pool.rule().freed(PEAK);
        steps(40, PEAK, GIB, 100 * MILLI);
        steps(40, 2 * GIB, GIB, 100 * MILLI);
        assertThat(pool.reservedBytes()).isLessThan(PEAK / 2);
    }

    @Test
    void aPoolThatGrowsBackWithoutMoreInUseIsSwollen() {
        steps(40, PEAK, GIB, 100 * MILLI);
        steps(40, 2 * GIB, GIB, 100 * MILLI);
        assertThat(pool.reservedBytes()).isLessThan(PEAK / 2);
        pool.use(PEAK / 2);
        pool.needAtLeast(PEAK);
        assertThat(pool.rule().isSwollen()).isFalse();
        pool.pass(ModelledPool.TICK_NANOS);
        assertThat(pool.rule().isSwollen()).isTrue();
        pool.pass(ModelledPool.TICK_NANOS);
        assertThat(pool.rule().isSwollen()).as("told once").isFalse();
    }

    @Test
    void aPoolThatGrowsForMoreUseIsNot() {
        steps(40, PEAK, GIB, 100 * MILLI);
        steps(40, 2 * GIB, GIB, 100 * MILLI);
        pool.use(PEAK + GIB);
        pool.needAtLeast(PEAK + 2 * GIB);
        pool.pass(ModelledPool.TICK_NANOS);
        assertThat(pool.rule().isSwollen()).isFalse();
    }

    /// Giving all idle memory back at once is paid for as everything else is.
    @Test
    void aPoolThatIsSwollenWaitsUntilThePriceIsSaved() {
        steps(40, PEAK, GIB, 100 * MILLI);
        steps(40, 2 * GIB, GIB, 100 * MILLI);
        int swollen = 0;
        for (int round = 0; round < 400; round++) {
            pool.use(GIB);
            pool.needAtLeast(PEAK);
            pool.pass(ModelledPool.TICK_NANOS);
            if (pool.rule().isSwollen()) {
                swollen++;
                pool.giveBackAll();
            }
            pool.pass(ModelledPool.TICK_NANOS);
            assertThat(pool.timeNanos()).isLessThanOrEqualTo(0.05 * pool.nanos() + ModelledPool.priceNanos(PEAK) / 100);
        }
        assertThat(swollen).isPositive();
    }
}
