package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.Graphs;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.GraphCapture;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Locale;
import java.util.function.ObjDoubleConsumer;

/// What captures cost an allocator: a pair of allocation and free outside captures, inside one, and on another stream
/// meanwhile; and outside again. Then an out of memory at true capacity: blocks of 1 GiB until one fails, its report,
/// and how long that took; how many blocks fit, `oom_peers.py` tells of PyTorch.
///
/// Arguments: the allocator; pairs a round (10,000); rounds (15). Medians, one line of JSON a row.
public final class CaptureCost {
    private static final long BYTES = 64 << 10;
    private static final long LARGE = 1L << 30;

    /// A capture is too short for the JVM's best compiler.
    private static final int WARM_UP_CAPTURES = 30;

    private final OpenMemory open;
    private final DeviceMemory memory;
    private final String spec;
    private final int pairs;
    private final int rounds;
    private final long stream;
    private final long other;

    private CaptureCost(OpenMemory open, String spec, int pairs, int rounds) {
        this.open = open;
        this.memory = open.memory();
        this.spec = spec;
        this.pairs = pairs;
        this.rounds = rounds;
        stream = open.newStream();
        other = open.newStream();
    }

    /// Runs all of it.
    ///
    /// @param arguments as above
    public static void main(String[] arguments) {
        int pairs = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 10_000;
        int rounds = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 15;
        try (OpenMemory open = new OpenMemory(arguments[0])) {
            new CaptureCost(open, arguments[0], pairs, rounds).run();
        }
    }

    private void run() {
        for (int i = 0; i < WARM_UP_CAPTURES; i++) {
            measure((what, nanos) -> {});
        }
        measure(this::print);
        fillUp();
    }

    private void measure(ObjDoubleConsumer<String> each) {
        each.accept("before any capture", time(stream));
        Graphs graphs = open.driver().graphs();
        long graph;
        try (GraphCapture capture = GraphCapture.begin(memory, 0, stream, CaptureMode.GLOBAL)) {
            each.accept("captured stream", time(stream));
            each.accept("another stream meanwhile", time(other));
            graph = capture.end();
        }
        graphs.destroy(0, graph);
        each.accept("after the capture", time(stream));
    }

    /// Nanoseconds of a pair.
    private double time(long on) {
        double[] nanos = new double[rounds];
        for (int round = 0; round < rounds; round++) {
            long begun = System.nanoTime();
            for (int i = 0; i < pairs; i++) {
                memory.free(memory.allocate(BYTES, 0, on), on);
            }
            nanos[round] = (double) (System.nanoTime() - begun) / pairs;
        }
        Arrays.sort(nanos);
        return nanos[rounds / 2];
    }

    private void print(String what, double nanos) {
        System.out.printf(
                Locale.ROOT,
                "{\"allocator\": \"%s\", \"row\": \"%s\", \"nanos_per_pair\": %.1f, \"driver\": \"%s\"}%n",
                spec,
                what,
                nanos,
                open.driver().description());
    }

    private void fillUp() {
        Deque<Long> blocks = new ArrayDeque<>();
        long begun = 0;
        try {
            while (true) {
                begun = System.nanoTime();
                blocks.push(memory.allocate(LARGE, 0, stream));
            }
        } catch (DeviceOutOfMemoryException full) {
            double millis = (System.nanoTime() - begun) / 1e6;
            System.out.printf(
                    Locale.ROOT,
                    "{\"allocator\": \"%s\", \"row\": \"out of memory\", \"blocks_of_gib\": %d, \"millis\": %.2f}%n",
                    spec,
                    blocks.size(),
                    millis);
            full.report().ifPresent(report -> System.err.println(report.text()));
        }
        blocks.forEach(block -> memory.free(block, stream));
    }
}
