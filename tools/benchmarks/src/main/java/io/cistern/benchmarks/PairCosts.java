package io.cistern.benchmarks;

import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.format.OutputFormatFactory;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/// Measures an allocation and its free through `caching`, by size and by threads, as `alloc_peers` does
/// through peers. Sizes are drawn over half of the largest.
///
/// Arguments: rounds (5); milliseconds a round (50). Prints a line of JSON for each case.
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 1, jvmArgsAppend = "-Xbatch") // No round waits for the compiler.
public class PairCosts {
    private static final String ALLOCATOR = "caching";
    private static final List<Long> SIZES = List.of(512L, 4L << 10, 64L << 10, 1L << 20, 4L << 20, 64L << 20);
    private static final long SIZE_OF_THREADS = 4 << 10;
    private static final int WARM_UPS = 4;
    private static final int WARM_UP_MILLIS = 450;

    /// Device memory for all threads.
    @State(Scope.Benchmark)
    public static class Memory {
        private OpenMemory open;
        private long stream;

        @Setup(Level.Trial)
        public void open() {
            open = new OpenMemory(ALLOCATOR);
            stream = open.newStream();
        }

        /// Waits between rounds, so that no pair pays for the work on streams.
        @TearDown(Level.Iteration)
        public void synchronize() {
            open.driver().devices().synchronize(0);
        }

        @TearDown(Level.Trial)
        public void close() {
            open.close();
        }
    }

    /// A thread's stream and the sizes that it asks for.
    @State(Scope.Thread)
    public static class Requests {
        @Param("4096")
        private long byteSize;

        @Param("false")
        private boolean oneStream;

        private DrawnSizes sizes;
        private long stream;

        @Setup(Level.Trial)
        public void choose(Memory memory) {
            sizes = DrawnSizes.upperHalf(byteSize);
            stream = oneStream ? memory.stream : memory.open.newStream();
        }
    }

    /// Allocates a block and frees it.
    @Benchmark
    public long pair(Memory memory, Requests requests) {
        long address = memory.open.memory().allocate(requests.sizes.next(), 0, requests.stream);
        memory.open.memory().free(address, requests.stream);
        return address;
    }

    /// Runs the measurement.
    ///
    /// @param arguments as above
    /// @throws RunnerException if a case fails
    public static void main(String[] arguments) throws RunnerException {
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 5;
        int millis = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 50;
        for (long byteSize : SIZES) {
            print("pair", "pair", 1, byteSize, nanos(1, byteSize, false, rounds, millis));
        }
        for (int threads = 1; threads <= Math.min(16, Runtime.getRuntime().availableProcessors()); threads *= 2) {
            print(
                    "threads",
                    "own streams",
                    threads,
                    SIZE_OF_THREADS,
                    nanos(threads, SIZE_OF_THREADS, false, rounds, millis));
            if (threads > 1) {
                print(
                        "threads",
                        "one stream",
                        threads,
                        SIZE_OF_THREADS,
                        nanos(threads, SIZE_OF_THREADS, true, rounds, millis));
            }
        }
    }

    /// Returns the nanoseconds of a thread's pair: the median over the rounds.
    private static double nanos(int threads, long byteSize, boolean oneStream, int rounds, int millis)
            throws RunnerException {
        Options options = new OptionsBuilder()
                .include("^" + PairCosts.class.getName().replace(".", "\\.") + "\\.pair$")
                .threads(threads)
                .param("byteSize", Long.toString(byteSize))
                .param("oneStream", Boolean.toString(oneStream))
                .warmupIterations(WARM_UPS)
                .warmupTime(TimeValue.milliseconds(WARM_UP_MILLIS))
                .measurementIterations(rounds)
                .measurementTime(TimeValue.milliseconds(millis))
                .shouldFailOnError(true)
                .build();
        RunResult result = new Runner(options, OutputFormatFactory.createFormatInstance(System.err, VerboseMode.NORMAL))
                .runSingle();
        return result.getPrimaryResult().getStatistics().getPercentile(50);
    }

    private static void print(String scenario, String variant, int threads, long byteSize, double nanos) {
        System.out.printf(
                Locale.ROOT,
                "{\"scenario\": \"%s\", \"variant\": \"%s\", \"allocator\": \"%s\", \"threads\": %d, \"byteSize\": %d, "
                        + "\"nanosPerPair\": %.2f, \"pairsPerSecond\": %.0f}%n",
                scenario,
                variant,
                ALLOCATOR,
                threads,
                byteSize,
                nanos,
                1e9 * threads / nanos);
    }
}
