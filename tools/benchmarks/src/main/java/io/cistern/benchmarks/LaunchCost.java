package io.cistern.benchmarks;

import io.cistern.CudaStream;
import io.cistern.buffers.CudaFunction;
import io.cistern.buffers.CudaModule;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Modules.Grid;
import io.cistern.cuda.kernels.MemoryKernels;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/// Measures a kernel launch in Java beside the same call in C: in one process, on one stream, in alternating
/// rounds. A round has few launches, so that the stream's queue is never full. On a GPU the driver takes most
/// of the time; with `peers/idle_driver.c` as the driver, the rest is Java's.
///
/// Arguments: the library made of `peers/buffer_peers.c`, rounds (400). Prints a line of JSON for each
/// way to launch.
public final class LaunchCost {
    /// Fewer launches than a stream accepts before a launch waits.
    private static final int LAUNCHES = 200;

    private static final int WARM_UP = 300;

    private final OpenMemory open = new OpenMemory("async");
    private final CudaStream stream = CudaStream.open(open.memory(), 0);
    private final BufferPeersInC inC;
    private final int rounds;

    private LaunchCost(Path library, int rounds) {
        inC = new BufferPeersInC(library, System.getProperty("cistern.cuda.library", "libcuda.so.1"));
        this.rounds = rounds;
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        new LaunchCost(Path.of(arguments[0]), arguments.length > 1 ? Integer.parseInt(arguments[1]) : 400).measure();
    }

    /// One way to launch.
    private record Way(String name, Launch launch) {}

    private interface Launch {
        void once();
    }

    private void measure() {
        try (CudaModule module = CudaModule.load(open.memory(), 0, MemoryKernels.ptx());
                DeviceBuffer buffer = DeviceBuffer.allocate(4096, stream)) {
            CudaFunction write = module.function("cistern_write_sequence_u32");
            long address = buffer.address();
            Grid grid = Grid.of(1, 1);
            Object[] boxed = {address, 1L, 0};
            compare(
                    n -> inC.launches(write.handle(), address, 1, 0, stream.handle(), n),
                    new Way("buffers", () -> write.launch(1, 1, stream, buffer, 1L, 0)),
                    new Way(
                            "driver",
                            () -> open.driver().modules().launch(0, write.handle(), grid, stream.handle(), boxed)));
        }
        stream.close();
        open.close();
    }

    private interface Counted {
        long nanos(long count);
    }

    private void compare(Counted c, Way... ways) {
        double[] inCNanos = new double[rounds];
        double[][] inJavaNanos = new double[ways.length][rounds];
        for (int round = -WARM_UP; round < rounds; round++) {
            int at = Math.max(round, 0);
            open.driver().memory().freeBytes(0); // makes the context current, for C
            inCNanos[at] = (double) c.nanos(LAUNCHES) / LAUNCHES;
            for (int way = 0; way < ways.length; way++) {
                inJavaNanos[way][at] = nanos(ways[way].launch());
            }
        }
        print("C", inCNanos, inCNanos);
        for (int way = 0; way < ways.length; way++) {
            print(ways[way].name(), inJavaNanos[way], inCNanos);
        }
    }

    private double nanos(Launch launch) {
        long begin = System.nanoTime();
        for (int i = 0; i < LAUNCHES; i++) {
            launch.once();
        }
        long taken = System.nanoTime() - begin;
        stream.synchronize();
        return (double) taken / LAUNCHES;
    }

    private static void print(String by, double[] nanos, double[] inC) {
        double median = median(nanos);
        System.out.printf(
                Locale.ROOT,
                "{\"measured\":\"launch\",\"allocator\":\"%s\",\"micros\":%.4f,\"fastestMicros\":%.4f,"
                        + "\"faster\":%.3f}%n",
                by,
                median / 1000,
                nanos[0] / 1000,
                median(inC) / median);
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
