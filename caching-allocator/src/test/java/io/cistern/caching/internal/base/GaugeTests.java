package io.cistern.caching.internal.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class GaugeTests {
    private static final long CHUNK = 10;

    private final SharedPeak shared = new SharedPeak();
    private final Gauge first = new Gauge(shared, CHUNK);
    private final Gauge second = new Gauge(shared, CHUNK);

    @Test
    void whatWasFreedIsWhatWasAddedAndIsNotThere() {
        first.add(7);
        first.remove(4);
        assertThat(first.current()).isEqualTo(3);
        assertThat(first.added() - first.current()).isEqualTo(4);
        assertThat(first.peak()).isEqualTo(7);
    }

    @Test
    void theSharedPeakIsNeverTooLowAndAtMostTwoChunksAGaugeTooHigh() {
        long seed = 5;
        SplittableRandom random = new SplittableRandom(seed);
        long peak = 0;
        for (int i = 0; i < 10_000; i++) {
            Gauge gauge = random.nextBoolean() ? first : second;
            if (random.nextBoolean()) {
                gauge.add(random.nextInt(30));
            } else {
                gauge.remove(random.nextLong(gauge.current() + 1));
            }
            peak = Math.max(peak, first.current() + second.current());
            assertThat(shared.peak()).as("step %d, seed %d", i, seed).isBetween(peak, peak + 4 * CHUNK);
        }
    }

    @Test
    void aResetMakesThePresentThePeak() {
        first.add(100);
        first.remove(95);
        first.resetPeak();
        shared.reset();
        assertThat(first.peak()).isEqualTo(5);
        assertThat(shared.peak()).isBetween(5L, 5 + 2 * CHUNK);
    }

    @Test
    void aGaugeThatEndedLeavesNothingLeased() {
        first.add(100);
        first.remove(100);
        first.end();
        shared.reset();
        assertThat(shared.peak()).isZero();
    }
}
