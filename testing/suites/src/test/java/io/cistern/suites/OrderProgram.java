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

/// Runs one thread's part of a scenario of [OrderMonteCarlo], drawn from a seed. A few blocks go from
/// stream to stream, by events, recorded uses, host functions and captures, while streams lag behind the
/// host. The owner of a block fills it with a number of its own and checks in stream order that the
/// number is still there.
///
/// **Threads.** One thread; others may run on the same device memory.
final class OrderProgram {
    private static final int STEPS = 14;
    private static final int MAX_LIVE = 8;

    /// The largest block: blocks share pages, fill one, or span several.
    private static final double LARGEST_LOG2 = 22;

    private final CudaDriver driver;
    private final Graphs graphs;
    private final DeviceMemory memory;
    private final MemoryKernels kernels;
    private final OrderCounts counts;

    /// The address of a counter of wrong words, in pinned memory. The kernels of all threads add to it.
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

    /// @param mismatches the address of a counter of wrong words
    /// @param seed the seed of all random choices
    /// @param streams streams that only this thread uses
    /// @param event an event that only this thread uses
    /// @param lag memory that a stream fills while the host goes on: [#LAG_BYTES]
    OrderProgram(
            DeviceMemory memory,
            MemoryKernels kernels,
            OrderCounts counts,
            long mismatches,
            long seed,
            long[] streams,
            long event,
            long lag) {
        this.driver = memory.driver(); // calls of the raw driver are not watched
        this.graphs = memory.driver().graphs();
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

    /// Filling this many bytes keeps a stream busy for as long as the host needs for many calls.
    static final long LAG_BYTES = 1L << 30;

    /// Runs the program and frees the remaining blocks.
    void run() {
        for (int step = 0; step < STEPS; step++) {
            step();
        }
        while (!live.isEmpty()) {
            free(remove());
        }
    }

    /// Destroys its graphs. Nobody uses their launches and results any more.
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

    /// Writes other contents into a block on its stream, and returns the block with them.
    private Block written(Block block) {
        Block other = new Block(block.address, block.words, ++contents, block.stream);
        driver.copies().fillWords(0, other.address, other.contents, other.words, other.stream);
        return other;
    }

    private void check(Block block) {
        kernels.countMismatches(block.address, block.words, block.contents, mismatches, block.stream);
    }

    /// Hands a block over to another stream.
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

    /// Checks and frees a block: on its stream, after a recorded use elsewhere, or after an event.
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

    /// Captures a graph that allocates, writes, checks and frees on one stream or two, and launches it several
    /// times. The blocks that it leaves are checked after the launches. Other streams go on meanwhile.
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

    /// Takes some blocks of other streams for a last use on streams that are about to be captured,
    /// which will free them.
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

    /// Does something on a stream that is not captured, if there is one.
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
            follow(on, before); // so the checks there come before the free
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

    /// Destroys a stream without blocks and creates a new one in its place, which often gets its handle.
    private void replaceStream(int index) {
        long ending = streams[index];
        if (live.stream().noneMatch(block -> block.stream == ending)) {
            memory.streamClosing(0, ending);
            driver.streams().destroy(0, ending);
            streams[index] = driver.streams().create(0);
        }
    }
}
