package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The bounds that the rule's description proves, on random workloads whose gaps are of all lengths, from a
/// tick to many limits, against one who knows the future.
final class AdaptiveThresholdBoundTests {
    private static final long PEAK = 4L << 30;
    private static final int STRETCHES = 300;
    /// Gaps are seen two ticks too long at most, and the shortest here is this many ticks.
    private static final int MIN_TICKS = 20;

    /// Use that stays the same for a while.
    private record Stretch(int level, long nanos) {}

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void timeAndRegretStayWithinTheirBounds(long seed) {
        List<Stretch> workload = workload(new SplittableRandom(seed));
        ModelledPool pool = new ModelledPool();
        double allNanos = ModelledPool.priceNanos(PEAK);
        for (Stretch stretch : workload) {
            pool.use(MemoryLevels.topBytes(stretch.level()));
            pool.pass(stretch.nanos());
            assertThat(pool.timeNanos()).isLessThanOrEqualTo(0.05 * pool.nanos() + 0.01 * allNanos);
        }
        long limit = pool.rule().limitNanos();
        double doublings = 1 + Math.log(limit / 1e6) / Math.log(2);
        double known = clairvoyantNanos(workload, limit);

        assertThat(pool.givenBackBytes()).isPositive();
        assertThat(pool.timeNanos() + pool.memoryNanos())
                .as("usually 1.7 to 1.9 times what one pays who knows")
                .isLessThan(2.2 * known)
                .as("proven")
                .isLessThanOrEqualTo(1.1 * (3 * known + (2 * doublings + 1) * allNanos));
    }

    /// The peak, then stretches of a kind for a while: short or long, high or low.
    private static List<Stretch> workload(SplittableRandom random) {
        int top = MemoryLevels.of(PEAK);
        List<Stretch> stretches = new ArrayList<>();
        stretches.add(new Stretch(top, 10 * ModelledPool.TICK_NANOS));
        double nanos = 0;
        for (int i = 0; i < STRETCHES; i++) {
            if (i % 12 == 0) {
                nanos = MIN_TICKS * ModelledPool.TICK_NANOS * Math.pow(10, 3 * random.nextDouble());
            }
            int level = random.nextInt(4) == 0 ? top : random.nextInt(top + 1);
            long tops = (long) (nanos * (0.5 + random.nextDouble()) / ModelledPool.TICK_NANOS);
            stretches.add(new Stretch(level, tops * ModelledPool.TICK_NANOS));
        }
        return stretches;
    }

    /// For each level and each of its gaps, the less of holding and buying.
    private static double clairvoyantNanos(List<Stretch> workload, long limitNanos) {
        double sum = 0;
        for (int level = 0; level <= MemoryLevels.of(PEAK); level++) {
            double price = ModelledPool.priceNanos(MemoryLevels.topBytes(level) - MemoryLevels.bottomBytes(level));
            long gap = 0;
            for (Stretch stretch : workload) {
                if (stretch.level() >= level) {
                    sum += Math.min(price, price * gap / limitNanos);
                    gap = 0;
                } else {
                    gap += stretch.nanos();
                }
            }
        }
        return sum;
    }
}
