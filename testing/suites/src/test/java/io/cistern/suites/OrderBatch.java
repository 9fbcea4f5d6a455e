package io.cistern.suites;

import io.cistern.DeviceMemory;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.function.Consumer;

/// Runs some scenarios of [OrderMonteCarlo] one after the other, on device memory of one simulated GPU.
final class OrderBatch implements AutoCloseable {
    /// The streams of one thread; the other thread has as many.
    private static final int STREAMS = 3;

    /// One in this many scenarios has two threads.
    private static final int WITH_THREADS = 8;

    /// Added to the seed for the other thread.
    private static final long OTHER = 0x9e37_79b9_7f4a_7c15L;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(16L << 30).build();
    private final DeviceMemory memory;
    private final MemoryKernels kernels;
    private final MemorySegment mismatches;
    private final OrderCounts counts;
    private final ExecutorService threads;
    private final long[][] streams = new long[2][STREAMS];
    private final long[] events = new long[2];
    private final long[] lags = new long[2];

    OrderBatch(Catalog catalog, Consumer<DeviceMemory> choosing, OrderCounts counts, ExecutorService threads) {
        this.counts = counts;
        this.threads = threads;
        memory = DeviceMemory.builder(gpu).catalog(catalog).open();
        choosing.accept(memory);
        kernels = MemoryKernels.load(gpu, 0);
        mismatches = gpu.memory().allocateHost(0, Long.BYTES).fill((byte) 0);
        for (int thread = 0; thread < 2; thread++) {
            events[thread] = gpu.events().create(0);
            lags[thread] = gpu.memory().allocate(0, OrderProgram.LAG_BYTES);
            for (int i = 0; i < STREAMS; i++) {
                streams[thread][i] = gpu.streams().create(0);
            }
        }
    }

    /// Runs the scenario of a seed.
    ///
    /// @throws AssertionError if a block had wrong contents, or memory was used that no block owned
    void run(long seed) throws InterruptedException, ExecutionException {
        OrderProgram one = program(0, seed);
        OrderProgram other = program(1, seed + OTHER);
        if (seed % WITH_THREADS == 0) {
            counts.withThreads.increment();
            Future<?> beside = threads.submit(other::run);
            try {
                one.run();
            } finally {
                beside.get();
            }
        } else {
            one.run();
        }
        gpu.devices().synchronize(0);
        one.end();
        other.end();
        long different = mismatches.get(ValueLayout.JAVA_LONG, 0);
        if (different != 0) {
            throw new AssertionError(different + " words differ from what was written");
        }
        if (!gpu.misuses().isEmpty()) {
            throw new AssertionError(gpu.misuses().toString());
        }
    }

    private OrderProgram program(int thread, long seed) {
        return new OrderProgram(
                memory, kernels, counts, mismatches.address(), seed, streams[thread], events[thread], lags[thread]);
    }

    @Override
    public void close() {
        memory.close();
        gpu.close();
    }
}
