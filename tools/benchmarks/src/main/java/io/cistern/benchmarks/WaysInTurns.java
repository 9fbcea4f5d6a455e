package io.cistern.benchmarks;

import io.cistern.CudaStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// Compares ways to copy the same bytes, in alternating rounds, in one process, on one stream. The first way is
/// the baseline for the others.
///
/// Prints a line of JSON for each way: the median of its rounds.
final class WaysInTurns {
    /// An operation that runs a given number of times.
    interface Work {
        /// Runs the operation `count` times and returns the nanoseconds.
        long nanos(long count);

        /// Returns work whose time ends when the stream has finished.
        static Work of(CudaStream stream, Runnable one) {
            return count -> {
                long begin = System.nanoTime();
                for (long i = 0; i < count; i++) {
                    one.run();
                }
                stream.synchronize();
                return System.nanoTime() - begin;
            };
        }
    }

    private record Way(String name, Work work) {}

    private final OpenMemory open;
    private final int rounds;
    private final String what;
    private final long byteSize;
    private final List<Way> ways = new ArrayList<>();

    /// @param what the kind of copy, for example `array to device`
    WaysInTurns(OpenMemory open, int rounds, String what, long byteSize) {
        this.open = open;
        this.rounds = rounds;
        this.what = what;
        this.byteSize = byteSize;
    }

    WaysInTurns add(String name, Work work) {
        ways.add(new Way(name, work));
        return this;
    }

    /// Runs the rounds and prints the results. Uncounted rounds come first, to warm up the compiler and the
    /// pages of host memory.
    ///
    /// @param count copies in each way's turn
    void compare(long count) {
        double[][] nanos = new double[ways.size()][rounds];
        for (int round = -Math.max(2, rounds / 3); round < rounds; round++) {
            for (int way = 0; way < ways.size(); way++) {
                open.driver().memory().freeBytes(0); // makes the context current, for C
                nanos[way][Math.max(round, 0)] = (double) ways.get(way).work().nanos(count) / count;
            }
        }
        double ofFirst = median(nanos[0]);
        for (int way = 0; way < ways.size(); way++) {
            print(ways.get(way).name(), median(nanos[way]), ofFirst);
        }
    }

    private void print(String way, double nanos, double ofFirst) {
        System.out.printf(
                Locale.ROOT,
                "{\"measured\":\"%s, %d B\",\"allocator\":\"%s\",\"micros\":%.3f,\"faster\":%.3f,"
                        + "\"gigabytesPerSecond\":%.1f}%n",
                what,
                byteSize,
                way,
                nanos / 1000,
                ofFirst / nanos,
                byteSize / nanos);
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
