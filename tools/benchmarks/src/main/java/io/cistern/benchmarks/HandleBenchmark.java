package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.simulated.SimulatedGpu;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// What a pool adds to the calls of a library: this library does nothing.
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class HandleBenchmark {
    private SimulatedGpu gpu;
    private DeviceMemory memory;
    private HandlePool<Object> pool;
    private final ThreadLocal<Object> ofThread = ThreadLocal.withInitial(Object::new);

    /// Each thread's own, as its stream.
    @State(Scope.Thread)
    public static class Calls {
        long count;
    }

    @Setup
    public void open() {
        gpu = SimulatedGpu.builder().build();
        memory = DeviceMemory.builder(gpu).open();
        pool = HandlePool.open(memory, HandleLibrary.of("none", _ -> new Object(), _ -> {}, (_, _) -> {}));
    }

    @TearDown
    public void close() {
        memory.close();
        gpu.close();
    }

    /// The stream is set already.
    @Benchmark
    public Object sameStream() {
        return pool.handle(0, 7);
    }

    /// It differs each time.
    @Benchmark
    public Object otherStream(Calls calls) {
        return pool.handle(0, 7 + (calls.count++ & 1));
    }

    /// The floor: a thread-local, without a device, a stream or an end.
    @Benchmark
    public Object threadLocal() {
        return ofThread.get();
    }
}
