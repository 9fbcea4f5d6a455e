package io.cistern.benchmarks;

import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.javacpp.CudaLibraries;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// Measures the look-up of a thread's handle: of a library that does nothing, which shows what the pool adds, and of
/// cuBLAS.
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class HandleBenchmark {
    /// `none` or `cublas`.
    @Param("none")
    private String library = "none";

    private OpenMemory open;
    private HandlePool<?> pool;
    private long first;
    private long second;

    /// A count for each thread.
    @State(Scope.Thread)
    public static class Calls {
        long count;
    }

    @Setup
    public void open() {
        open = new OpenMemory("caching");
        first = open.newStream();
        second = open.newStream();
        pool = library.equals("cublas")
                ? HandlePool.open(open.memory(), CudaLibraries.cublas(open.memory()))
                : HandlePool.open(open.memory(), HandleLibrary.of("none", _ -> new Object(), _ -> {}, (_, _) -> {}));
    }

    @TearDown
    public void close() {
        open.close();
    }

    /// Asks for the stream that is already set.
    @Benchmark
    public Object sameStream() {
        return pool.handle(0, first);
    }

    /// Asks for another stream each time.
    @Benchmark
    public Object otherStream(Calls calls) {
        return pool.handle(0, (calls.count++ & 1) == 0 ? first : second);
    }
}
