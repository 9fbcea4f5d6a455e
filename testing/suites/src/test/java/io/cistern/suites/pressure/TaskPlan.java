package io.cistern.suites.pressure;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/// The plan of one task.
///
/// @param wantBytes the bytes that it would hold at once if nothing were refused
/// @param items the number of items of its input; each item can be worked on alone
/// @param batches the number of pieces of work, one after the other, each on all items
/// @param blocks the number of blocks into which a piece of work divides its memory
/// @param virtual whether its threads are virtual
/// @param pair whether a second thread of the task does half of the items, while the first waits for it
/// @param pauseNanos the longest pause between allocations
/// @param locks whether it takes the lock that all such tasks share, in the middle of each piece
record TaskPlan(
        long id,
        int priority,
        long seed,
        long wantBytes,
        int items,
        int batches,
        int blocks,
        boolean virtual,
        boolean pair,
        boolean locks,
        int pauseNanos) {
    /// The largest task wants up to 2⁸ times as much as the smallest; one in a dozen wants more than the
    /// capacity.
    private static final double SKEW = 8;

    /// The longest pauses between allocations, from negligible to longer than all other work.
    private static final int[] PAUSES_NANOS = {1_000, 100_000, 1_000_000};

    /// Draws tasks that together want so many bytes.
    static List<TaskPlan> draw(Random random, int count, long wantBytes) {
        double[] weights =
                random.doubles(count, 0, SKEW).map(e -> Math.pow(2, e)).toArray();
        double sum = 0;
        for (double weight : weights) {
            sum += weight;
        }
        boolean skewed = random.nextInt(4) != 0;
        List<TaskPlan> plans = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            double share = skewed ? weights[i] / sum : 1.0 / count;
            plans.add(one(random, i, (long) (wantBytes * share)));
        }
        return plans;
    }

    private static TaskPlan one(Random random, int id, long wantBytes) {
        return new TaskPlan(
                id,
                random.nextInt(3),
                random.nextLong(),
                Math.max(wantBytes, 1 << 16),
                16 << random.nextInt(3),
                1 + random.nextInt(3),
                1 + random.nextInt(6),
                random.nextBoolean(),
                random.nextInt(4) == 0,
                random.nextInt(4) == 0,
                PAUSES_NANOS[random.nextInt(PAUSES_NANOS.length)]);
    }

    /// Returns the value that a task computes for an item, as the host knows it.
    long expected(int batch, int item) {
        long mixed = (seed + batch) * 0x9E3779B97F4A7C15L + item * 0xC2B2AE3D27D4EB4FL;
        return mixed ^ mixed >>> 29;
    }

    /// Returns the bytes that a piece of work on so many items holds at once.
    long bytes(int itemCount) {
        return wantBytes * itemCount / items;
    }
}
