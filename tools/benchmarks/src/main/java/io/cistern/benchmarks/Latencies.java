package io.cistern.benchmarks;

/// A histogram of nanoseconds, in buckets of 1/32 of their power of two: percentiles are at most 3 % too high.
final class Latencies {
    private static final int STEP_BITS = 5;
    private static final int STEPS = 1 << STEP_BITS;

    private final long[] counts = new long[(Long.SIZE - STEP_BITS) * STEPS];
    private long highest;

    void record(long nanos) {
        counts[bucketOf(nanos)]++;
        highest = Math.max(highest, nanos);
    }

    void add(Latencies other) {
        for (int i = 0; i < counts.length; i++) {
            counts[i] += other.counts[i];
        }
        highest = Math.max(highest, other.highest);
    }

    long count() {
        long sum = 0;
        for (long each : counts) {
            sum += each;
        }
        return sum;
    }

    long highest() {
        return highest;
    }

    /// The least value, rounded up, that so many percent of the values do not exceed.
    long nanosAt(double percentile) {
        long left = (long) Math.ceil(count() * percentile / 100);
        for (int i = 0; i < counts.length; i++) {
            left -= counts[i];
            if (left <= 0) {
                return Math.min(highest, endOf(i));
            }
        }
        return highest;
    }

    /// Below 32 each value has a bucket; above, a power of two has 32.
    private static int bucketOf(long nanos) {
        int shift = Math.max(0, Long.SIZE - Long.numberOfLeadingZeros(nanos) - STEP_BITS - 1);
        return shift * STEPS + (int) (nanos >>> shift);
    }

    private static long endOf(int bucket) {
        int shift = Math.max(0, bucket / STEPS - 1);
        return ((bucket - (long) shift * STEPS + 1) << shift) - 1;
    }
}
