package io.cistern.suites;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/// What one thread does in one situation of [OrderMonteCarlo], drawn from a seed: a few blocks that go from
/// stream to stream, by events, recorded uses, host functions and captures, while streams lag behind the host.
/// Whoever has a block fills it with a number of its own and looks whether it is still there in stream order.
///
/// **Threads.** One, beside others on the same device memory.
final class OrderProgram {
    private static final int STEPS = 14;
    private static final int MAX_LIVE = 8;

    /// So that blocks share pages, fill one, and span some.
    private static final double LARGEST_LOG2 = 22;

    private final CudaDriver driver;
    private final Graphs graphs;
    private final DeviceMemory memory;
    private final MemoryKernels kernels;
    private final OrderCounts counts;

    /// Adds up words that differ; on the device's bus, for all threads.
    private final long mismatches;

    private final SplittableRandom random;
    private final long[] streams;
    private final long event;
    private final long lag;
    private final List<Block> live = new ArrayList<>();
    private final List<Long> executables = new ArrayList<>();
    private final List<Long> captured = new ArrayList<>();
    private int contents;

    private record Block(long address, long words, int contents, long stream) {}

    /// @param mismatches where words are counted that differ
    /// @param seed of all that is drawn
    /// @param streams this thread's alone
    /// @param event this thread's alone
    /// @param lag memory that a stream is busy filling while the host goes on: [#LAG_BYTES]
    OrderProgram(
            CudaDriver driver,
            DeviceMemory memory,
            MemoryKernels kernels,
            OrderCounts counts,
            long mismatches,
            long seed,
            long[] streams,
            long event,
            long lag) {
        this.driver = driver;
        this.graphs = driver.graphs();
        this.memory = memory;
        this.kernels = kernels;
        this.counts = counts;
        this.mismatches = mismatches;
        this.random = new SplittableRandom(seed);
        this.contents = random.nextInt(1 << 30);
        this.streams = streams;
        this.event = event;
        this.lag = lag;
    }

    /// A fill of that takes some tenths of a millisecond: as much as a hundred calls.
    static final long LAG_BYTES = 1L << 30;

    /// Does all of it, and frees what is left.
    void run() {
        for (int step = 0; step < STEPS; step++) {
            step();
        }
        while (!live.isEmpty()) {
            free(remove());
        }
    }

    /// Destroys its graphs, whose launches and results nobody uses any more.
    void end() {
        executables.forEach(each -> graphs.destroyExecutable(0, each));
        captured.forEach(each -> graphs.destroy(0, each));
    }

    private void step() {
        int dice = random.nextInt(100);
        if (live.isEmpty() || (dice < 38 && live.size() < MAX_LIVE)) {
            live.add(allocate(stream()));
        } else if (dice < 68) {
            free(remove());
        } else if (dice < 78) {
            live.add(handOver(remove()));
        } else if (dice < 90) {
            counts.lags.increment();
            driver.copies().fillBytes(0, lag, (byte) 0, random.nextLong(LAG_BYTES), stream());
        } else if (dice < 93) {
            capture();
        } else if (dice < 94) {
            counts.hostFunctions.increment();
            driver.streams().launchHostFunction(0, stream(), counts.hostFunctionsRun::increment);
        } else if (dice < 98) {
            memory.trim(0, random.nextLong(8L << 20), TrimMode.WITHOUT_WAITING);
        } else {
            replaceStream(random.nextInt(streams.length));
        }
    }

    private long stream() {
        return streams[random.nextInt(streams.length)];
    }

    private Block remove() {
        return live.remove(random.nextInt(live.size()));
    }

    private Block allocate(long stream) {
        counts.allocations.increment();
        long words = 1 + (long) Math.pow(2, random.nextDouble(LARGEST_LOG2 - 2));
        long address = memory.allocate(words * Integer.BYTES, 0, stream);
        return written(new Block(address, words, 0, stream));
    }

    /// The block with other contents, on its stream.
    private Block written(Block block) {
        Block other = new Block(block.address, block.words, ++contents, block.stream);
        driver.copies().fillWords(0, other.address, other.contents, other.words, other.stream);
        return other;
    }

    private void check(Block block) {
        kernels.countMismatches(block.address, block.words, block.contents, mismatches, block.stream);
    }

    /// Another stream goes on with a block.
    private Block handOver(Block block) {
        long other = stream();
        follow(other, block.stream);
        Block theirs = new Block(block.address, block.words, block.contents, other);
        check(theirs);
        return written(theirs);
    }

    private void follow(long later, long earlier) {
        if (later != earlier) {
            driver.events().record(0, event, earlier);
            driver.streams().await(0, later, event);
        }
    }

    /// Checks and frees a block: on its stream, after a use elsewhere that is recorded, or after an event.
    private void free(Block block) {
        check(block);
        switch (random.nextInt(6)) {
            case 0 -> {
                long other = stream();
                follow(other, block.stream);
                check(new Block(block.address, block.words, block.contents, other));
                memory.recordUse(block.address, other);
                memory.free(block.address, block.stream);
            }
            case 1 -> {
                driver.events().record(0, event, block.stream);
                memory.freeAfter(block.address, event);
            }
            default -> memory.free(block.address, block.stream);
        }
    }

    /// A graph that allocates, writes, checks and frees on one stream or two, and is launched some times; what
    /// it leaves is checked behind the launches. Other streams go on meanwhile.
    private void capture() {
        counts.captures.increment();
        long origin = stream();
        long joined = random.nextBoolean() ? origin : stream();
        List<Block> used = useOn(origin, joined);
        CaptureMode mode = random.nextBoolean() ? CaptureMode.GLOBAL : CaptureMode.THREAD_LOCAL;
        GraphCapture capture = GraphCapture.begin(memory, 0, origin, mode);
        List<Block> inside = new ArrayList<>();
        long graph;
        try {
            follow(joined, origin);
            for (int step = random.nextInt(2, 10); step > 0; step--) {
                if (random.nextBoolean()) {
                    captureStep(inside, random.nextBoolean() ? origin : joined);
                } else {
                    stepBeside(origin, joined, used);
                }
            }
            follow(origin, joined);
            graph = capture.end();
        } finally {
            capture.close();
        }
        used.forEach(each -> memory.free(each.address, each.stream));
        launch(graph, inside);
    }

    /// Takes some blocks of others for a last use on streams that are going to be captured: they are to be freed.
    private List<Block> useOn(long origin, long joined) {
        List<Block> used = new ArrayList<>();
        for (Block block : List.copyOf(live)) {
            if (block.stream != origin && block.stream != joined && random.nextBoolean()) {
                long on = random.nextBoolean() ? origin : joined;
                follow(on, block.stream);
                check(new Block(block.address, block.words, block.contents, on));
                memory.recordUse(block.address, on);
                live.remove(block);
                used.add(block);
            }
        }
        return used;
    }

    /// A stream that is not captured does something, if there is one.
    private void stepBeside(long origin, long joined, List<Block> used) {
        int index = random.nextInt(streams.length);
        long stream = streams[index];
        int dice = random.nextInt(10);
        if (!used.isEmpty() && dice < 4) {
            Block block = used.removeLast();
            memory.free(block.address, dice == 0 ? origin : block.stream);
        } else if (dice < 5) {
            memory.trim(0, 0, random.nextBoolean() ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING);
        } else if (stream != origin && stream != joined) {
            if (dice < 8) {
                freeOrAllocate(stream);
            } else if (dice < 9) {
                driver.copies().fillBytes(0, lag, (byte) 0, random.nextLong(LAG_BYTES), stream);
            } else if (used.stream().noneMatch(block -> block.stream == stream)) {
                replaceStream(index);
            }
        }
    }

    private void freeOrAllocate(long stream) {
        List<Block> own = live.stream().filter(block -> block.stream == stream).toList();
        if (own.isEmpty() || random.nextInt(3) == 0) {
            live.add(allocate(stream));
        } else {
            live.remove(own.getFirst());
            check(own.getFirst());
            memory.free(own.getFirst().address, stream);
        }
    }

    private void captureStep(List<Block> inside, long on) {
        if (inside.isEmpty() || random.nextInt(3) > 0) {
            inside.add(allocate(on));
        } else {
            Block block = inside.remove(random.nextInt(inside.size()));
            check(block);
            memory.free(block.address, block.stream);
        }
    }

    private void launch(long graph, List<Block> results) {
        captured.add(graph);
        long executable = graphs.instantiate(0, graph, true);
        executables.add(executable);
        long before = stream();
        for (int launches = random.nextInt(1, 4); launches > 0; launches--) {
            long on = stream();
            follow(on, before); // and so the checks there come before the free
            before = on;
            graphs.launch(0, executable, on);
            for (Block result : results) {
                check(new Block(result.address, result.words, result.contents, on));
            }
            if (launches == 1) {
                results.forEach(result -> memory.free(result.address, on));
            }
        }
    }

    /// A stream without blocks ends, and a new one takes its place, often with its handle.
    private void replaceStream(int index) {
        long ending = streams[index];
        if (live.stream().noneMatch(block -> block.stream == ending)) {
            memory.streamClosing(0, ending);
            driver.streams().destroy(0, ending);
            streams[index] = driver.streams().create(0);
        }
    }
}
