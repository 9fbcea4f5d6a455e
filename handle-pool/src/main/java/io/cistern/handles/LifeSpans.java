package io.cistern.handles;

import java.util.List;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.LongStream;

/// How long platform threads with a handle lived: from a thread's first handle until the pool noticed its end.
/// The pool notices some tens of milliseconds later, or sooner if another thread needs a handle.
///
/// @param count the number of threads that ended
/// @param totalNanos the sum of their spans in nanoseconds
/// @param longestNanos the longest span in nanoseconds
/// @param byMillis counts by powers of two: the first is of spans under 1 ms, the next of 1 to 2 ms, then 2 to
///     4 ms, and so on; the last has all longer ones
public record LifeSpans(long count, long totalNanos, long longestNanos, List<Long> byMillis) {
    private static final int BUCKETS = 32;
    private static final int NANOS_PER_MILLI = 1_000_000;

    /// Copies the list.
    public LifeSpans {
        byMillis = List.copyOf(byMillis);
    }

    /// Returns the mean span in nanoseconds; 0 if no thread ended.
    public long meanNanos() {
        return count == 0 ? 0 : totalNanos / count;
    }

    static final class Counter {
        private final AtomicLongArray buckets = new AtomicLongArray(BUCKETS);
        private final LongAdder total = new LongAdder();
        private final LongAccumulator longest = new LongAccumulator(Math::max, 0);

        void add(long nanos) {
            int bucket = Long.SIZE - Long.numberOfLeadingZeros(nanos / NANOS_PER_MILLI);
            buckets.incrementAndGet(Math.min(bucket, BUCKETS - 1));
            total.add(nanos);
            longest.accumulate(nanos);
        }

        LifeSpans now() {
            List<Long> counts = LongStream.range(0, BUCKETS)
                    .map(bucket -> buckets.get((int) bucket))
                    .boxed()
                    .toList();
            long count = counts.stream().mapToLong(Long::longValue).sum();
            return new LifeSpans(count, total.sum(), longest.get(), counts);
        }
    }
}
