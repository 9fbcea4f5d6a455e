package io.cistern.benchmarks;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.format.OutputFormatFactory;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/// Measures an allocation and its free through an allocator, as `alloc_peers` does through peers. JMH runs it with
/// options of its own (`-t 16` for threads, `-prof gc` for garbage); `main` runs the cases of the pages.
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(value = 1, jvmArgsAppend = "-Xbatch") // No round waits for the compiler.
public class PairCosts {
    private static final List<Long> SIZES = List.of(512L, 4L << 10, 64L << 10, 1L << 20, 4L << 20, 64L << 20);
    private static final long SIZE_OF_THREADS = 4 << 10;
    private static final int WARM_UPS = 4;
    private static final int WARM_UP_MILLIS = 450;

    /// Device memory for all threads.
    @State(Scope.Benchmark)
    public static class Memory {
        @Param("caching")
        private String allocator = "caching";

        private OpenMemory open;
        private long stream;

        @Setup(Level.Trial)
        public void open() {
            open = new OpenMemory(allocator);
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
            sizes = new DrawnSizes(byteSize);
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

    /// Measures pairs of `caching` by size and by threads, and prints a line for each case.
    ///
    /// @param arguments rounds (5); milliseconds a round (50)
    public static void main(String[] arguments) throws RunnerException {
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 5;
        int millis = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 50;
        for (long byteSize : SIZES) {
            measure("pair", "pair", 1, byteSize, rounds, millis);
        }
        for (int threads = 1; threads <= Math.min(16, Runtime.getRuntime().availableProcessors()); threads *= 2) {
            measure("threads", "own streams", threads, SIZE_OF_THREADS, rounds, millis);
            if (threads > 1) {
                measure("threads", "one stream", threads, SIZE_OF_THREADS, rounds, millis);
            }
        }
    }

    private static void measure(String scenario, String variant, int threads, long byteSize, int rounds, int millis)
            throws RunnerException {
        OptionsBuilder options = new OptionsBuilder();
        options.include("^" + PairCosts.class.getName().replace(".", "\\.") + "\\.pair$")
                .threads(threads)
                .param("byteSize", Long.toString(byteSize))
                .param("oneStream", Boolean.toString(variant.equals("one stream")))
                .warmupIterations(WARM_UPS)
                .warmupTime(TimeValue.milliseconds(WARM_UP_MILLIS))
                .measurementIterations(rounds)
                .measurementTime(TimeValue.milliseconds(millis))
                .shouldFailOnError(true);
        double nanos = new Runner(
                        options.build(), OutputFormatFactory.createFormatInstance(System.err, VerboseMode.NORMAL))
                .runSingle()
                .getPrimaryResult()
                .getStatistics()
                .getPercentile(50);
        Json.print(
                "scenario", scenario,
                "variant", variant,
                "allocator", "caching",
                "threads", threads,
                "byteSize", byteSize,
                "nanosPerPair", Json.rounded(nanos, 2),
                "pairsPerSecond", Math.round(1e9 * threads / nanos));
    }
}
