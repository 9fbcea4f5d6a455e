package io.cistern.cli.combinations;

import io.cistern.cli.combinations.Combination.Graphs;
import io.cistern.cli.combinations.Combination.Trouble;
import io.cistern.cli.combinations.CombinedProgram.Block;
import io.cistern.cli.combinations.CombinedProgram.Gpu;
import io.cistern.cli.refusals.RefusalOracle;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.pressure.RetryOom;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.pressure.TaskArbiter;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/// One thread's part of a [CombinedProgram].
///
/// **Threads.** One at a time.
final class CombinedWorker {
    private static final int STREAMS = 2;
    private static final int OPERATIONS = 60;
    private static final int MOST_LIVE = 24;
    private static final int MOST_GRAPHS = 3;
    private static final int MOST_BUFFERS = 4;
    private static final int TRIES = 20;
    private static final long MIB = CombinedProgram.MIB;

    private final CombinedProgram program;
    private final SplittableRandom random;
    private final CudaDriver driver;
    private final long[][] streams;
    private final long[] events;
    private final List<Block> blocks = new ArrayList<>();
    private final List<Buffer> buffers = new ArrayList<>();
    private final List<Captured> graphs = new ArrayList<>();

    /// The memory of all captures.
    private final List<GraphMemory> memories = new CopyOnWriteArrayList<>();
    private final int id;
    private int seeds;
    private long operations;

    private record Captured(CudaGraph graph, int device, long stream) {}

    private static final class Buffer {
        final SpillableBuffer buffer;
        int seed;
        boolean isWritten;

        Buffer(SpillableBuffer buffer) {
            this.buffer = buffer;
        }
    }

    CombinedWorker(CombinedProgram program, SplittableRandom random) {
        this.program = program;
        this.random = random;
        driver = program.driver;
        id = random.nextInt(1 << 20);
        seeds = random.nextInt(1 << 28);
        streams = new long[program.deviceCount()][STREAMS];
        events = new long[program.deviceCount()];
        for (int device = 0; device < streams.length; device++) {
            events[device] = driver.events().create(device);
            for (int i = 0; i < STREAMS; i++) {
                streams[device][i] = driver.streams().create(device);
            }
        }
    }

    long operations() {
        return operations;
    }

    /// Returns the buffers that are on their devices now.
    List<SpillableBuffer> onDevice() {
        return buffers.stream()
                .map(each -> each.buffer)
                .filter(program::isOnDevice)
                .toList();
    }

    void run() {
        TaskArbiter arbiter = program.arbiter();
        if (arbiter == null) {
            steps();
        } else {
            arbiter.task(id, id % 3).run(this::steps);
        }
    }

    private void steps() {
        for (int i = 0; i < OPERATIONS; i++) {
            trouble();
            step(random.nextInt(100));
            operations++;
        }
    }

    private void trouble() {
        int device = device();
        switch (program.combination.of(Trouble.class)) {
            case LONG_WORK -> {
                if (oneIn(4)) {
                    program.gpu.keepBusy(device, stream(device), random.nextLong(50_000_000));
                }
            }
            case OTHERS -> {
                if (oneIn(6)) {
                    others(program.gpus.get(device), device);
                }
            }
            case DRIVER -> {
                if (oneIn(8)) {
                    program.failSomewhere(random);
                }
            }
            case NONE, HEAP -> {
                if (oneIn(16)) {
                    program.gpu.keepBusy(device, stream(device), random.nextLong(2_000_000));
                }
            }
        }
    }

    /// Another library takes memory, or gives it back.
    private void others(Gpu gpu, int device) {
        Long theirs = gpu.foreign.size() > 2 ? gpu.foreign.poll() : null;
        if (theirs != null) {
            program.gpu.memory().free(device, theirs);
            return;
        }
        try {
            gpu.foreign.add(program.gpu.memory().allocate(device, random.nextLong(1, 24 * MIB)));
        } catch (CudaException full) {
            operations--;
        }
    }

    private boolean oneIn(int n) {
        return random.nextInt(n) == 0;
    }

    private int device() {
        return random.nextInt(streams.length);
    }

    private long stream(int device) {
        return streams[device][random.nextInt(STREAMS)];
    }

    private void step(int dice) {
        if (dice < 40 && blocks.size() < MOST_LIVE) {
            allocate();
        } else if (dice < 62) {
            free();
        } else if (dice < 68) {
            give();
        } else if (dice < 74) {
            take();
        } else if (dice < 82) {
            spill();
        } else if (dice < 90) {
            graph();
        } else if (dice < 93) {
            trim();
        } else if (dice < 95) {
            endStream();
        } else if (dice < 96) {
            compact();
        } else {
            look();
        }
    }

    /// Makes a call into the allocators.
    private <T> T called(Supplier<T> call) {
        BooleanSupplier isFull = () -> random.nextInt(8) == 0;
        return program.exposed(isFull, call);
    }

    private boolean isRefused(Throwable failure) {
        if (failure instanceof RetryOom rollsBack) {
            while (!blocks.isEmpty()) {
                free(blocks.removeLast());
            }
            rollsBack.blockUntilReady();
            return true;
        }
        return (failure instanceof RuntimeException refused && RefusalOracle.isRefusal(refused))
                || program.mayFail(failure);
    }

    private static AssertionError unexpected(Throwable failure) {
        return new AssertionError("unexpected: " + failure, failure);
    }

    private long size() {
        return switch (random.nextInt(6)) {
            case 0 -> random.nextLong(2 * MIB, 12 * MIB);
            case 1 -> random.nextLong(64 << 10, 3 * MIB);
            default -> 4 + random.nextLong(64 << 10);
        };
    }

    private void allocate() {
        int device = device();
        long stream = stream(device);
        long byteSize = size();
        try {
            long address = called(() -> program.route(byteSize, device, stream));
            Block block = new Block(address, byteSize, device, ++seeds, stream);
            enter(block);
            blocks.add(block);
            write(block);
        } catch (RuntimeException | OutOfMemoryError failure) {
            if (!isRefused(failure)) {
                throw unexpected(failure);
            }
        }
    }

    /// No two live blocks overlap.
    private void enter(Block block) {
        Map.Entry<Long, Block> below = program.live.lowerEntry(block.address() + block.byteSize());
        if (below != null && below.getKey() + below.getValue().byteSize() > block.address()) {
            throw new AssertionError(block + " overlaps " + below.getValue());
        }
        program.live.put(block.address(), block);
    }

    void write(Block block) {
        working(() -> program.gpus
                .get(block.device())
                .patterns
                .write(block.address(), block.byteSize(), block.seed(), block.stream()));
    }

    private void verify(Block block) {
        working(() -> program.gpus
                .get(block.device())
                .patterns
                .verify(block.address(), block.byteSize(), block.seed(), block.stream()));
    }

    /// Gives the device work, which may have to be asked for again. No live memory moves meanwhile.
    private void working(Runnable launch) {
        Lock lock = program.work.readLock();
        lock.lock();
        try {
            again(() -> {
                launch.run();
                return true;
            });
        } finally {
            lock.unlock();
        }
    }

    /// Makes a call of the program's own, again if the driver was asked to refuse it.
    private <T> T again(Supplier<T> call) {
        for (int tries = 0; ; tries++) {
            try {
                return call.get();
            } catch (CudaException refused) {
                if (!program.mayFail(refused) || tries == TRIES) {
                    throw refused;
                }
            }
        }
    }

    private void follow(int device, long later, long earlier) {
        if (later != earlier) {
            working(() -> driver.events().record(device, events[device], earlier));
            working(() -> driver.streams().await(device, later, events[device]));
        }
    }

    private void free() {
        if (!blocks.isEmpty()) {
            Block block = blocks.remove(random.nextInt(blocks.size()));
            verify(block);
            free(block, last(block));
        }
    }

    private void free(Block block) {
        verify(block);
        free(block, block.stream());
    }

    /// Hands a block over to another stream in some of the cases.
    ///
    /// @return the stream to free it on
    private long last(Block block) {
        long own = block.stream();
        if (!oneIn(3)) {
            return own;
        }
        int device = block.device();
        long other = stream(device);
        follow(device, other, own);
        Block there = new Block(block.address(), block.byteSize(), device, ++seeds, other);
        write(there);
        verify(there);
        switch (random.nextInt(3)) {
            case 0 -> {
                return other;
            }
            case 1 -> follow(device, own, other);
            default -> {
                if (!isRecorded(block, other)) {
                    follow(device, own, other);
                }
            }
        }
        return own;
    }

    private boolean isRecorded(Block block, long stream) {
        try {
            return called(() -> {
                program.memory.recordUse(block.address(), stream);
                return true;
            });
        } catch (RuntimeException | OutOfMemoryError failure) {
            if (!program.mayFail(failure)) {
                throw unexpected(failure);
            }
            return false;
        }
    }

    private void free(Block block, long last) {
        program.live.remove(block.address());
        try {
            called(() -> {
                program.memory.free(block.address(), last);
                return true;
            });
        } catch (RuntimeException | OutOfMemoryError failure) {
            if (!program.mayFail(failure)) {
                throw unexpected(failure);
            }
            program.unsure.add(new Block(block.address(), block.byteSize(), block.device(), block.seed(), last));
        }
    }

    /// Gives a block to whoever takes it.
    private void give() {
        if (!blocks.isEmpty() && program.handedOver.size() < MOST_LIVE) {
            Block block = blocks.remove(random.nextInt(blocks.size()));
            working(() -> driver.streams().synchronize(block.device(), block.stream()));
            program.handedOver.add(block);
        }
    }

    private void take() {
        Block block = program.handedOver.poll();
        if (block != null) {
            Block here =
                    new Block(block.address(), block.byteSize(), block.device(), block.seed(), stream(block.device()));
            verify(here);
            program.live.put(here.address(), here);
            blocks.add(here);
        }
    }

    private void spill() {
        SpillStore store = program.store;
        if (store == null) {
            return;
        }
        try {
            if (buffers.size() < MOST_BUFFERS) {
                int device = device();
                long byteSize = size();
                long stream = stream(device);
                buffers.add(new Buffer(called(() -> store.allocate(byteSize, device, stream, random.nextInt(3)))));
            } else if (oneIn(4)) {
                closeBuffer(buffers.remove(random.nextInt(buffers.size())));
            } else {
                use(buffers.get(random.nextInt(buffers.size())));
            }
        } catch (RuntimeException | OutOfMemoryError failure) {
            if (!isRefused(failure)) {
                throw unexpected(failure);
            }
        }
    }

    private void use(Buffer each) {
        int device = each.buffer.device();
        long stream = stream(device);
        try (SpillableBuffer.Lease lease = called(() -> each.buffer.acquire(stream))) {
            long byteSize = each.buffer.byteSize();
            if (each.isWritten) {
                verify(new Block(lease.address(), byteSize, device, each.seed, stream));
            }
            each.seed = ++seeds;
            write(new Block(lease.address(), byteSize, device, each.seed, stream));
            each.isWritten = true;
        }
    }

    private void closeBuffer(Buffer each) {
        for (int tries = 0; ; tries++) {
            try {
                each.buffer.close();
                return;
            } catch (CudaException refused) {
                if (!program.mayFail(refused) || tries == TRIES) {
                    throw refused;
                }
                LockSupport.parkNanos(1_000_000); // another worker's capture ends
            }
        }
    }

    /// Captures a graph that checks memory of its own, or launches one, or closes one.
    private void graph() {
        if (program.combination.has(Graphs.NONE)) {
            return;
        }
        Lock lock = program.captures.readLock();
        lock.lock();
        try {
            if (graphs.size() < MOST_GRAPHS) {
                capture();
            } else if (oneIn(3)) {
                graphs.removeFirst().graph.close();
            } else {
                Captured some = graphs.get(random.nextInt(graphs.size()));
                working(() -> some.graph.launch(some.stream));
            }
        } catch (RuntimeException | OutOfMemoryError failure) {
            if (!isRefused(failure)) {
                throw unexpected(failure);
            }
        } finally {
            lock.unlock();
        }
    }

    private void capture() {
        int device = device();
        long stream = stream(device);
        long byteSize = random.nextLong(4, MIB) & -4;
        Gpu gpu = program.gpus.get(device);
        try (GraphCapture capture = GraphCapture.begin(program.memory, device, stream, CaptureMode.RELAXED)) {
            memories.add(capture.memory());
            int seed = ++seeds;
            long address = called(() -> program.memory.allocate(byteSize, device, stream));
            working(() -> driver.copies().fillWords(device, address, seed, byteSize / 4, stream));
            working(() -> gpu.kernels.countMismatches(address, byteSize / 4, seed, gpu.mismatches.address(), stream));
            program.memory.free(address, stream);
            CudaGraph graph = capture.endAndInstantiate();
            graphs.add(new Captured(graph, device, stream));
            working(() -> graph.launch(stream));
        }
    }

    /// Returns the bytes that graphs of this worker have from allocators of their own.
    long bytesOfGraphs(int device) {
        return memories.stream()
                .mapToLong(each -> each.statistics(device).requestedBytes())
                .sum();
    }

    private void trim() {
        TrimMode mode = oneIn(4) ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING;
        long kept = oneIn(2) ? 0 : random.nextLong(64 * MIB);
        int device = device();
        tried(() -> program.memory.trim(device, kept, mode));
    }

    private void compact() {
        int device = device();
        tried(() -> program.allocator.compact(device));
    }

    private void tried(Supplier<Object> call) {
        try {
            called(call);
        } catch (RuntimeException | OutOfMemoryError failure) {
            if (!program.mayFail(failure)) {
                throw unexpected(failure);
            }
        }
    }

    /// Ends a stream that nothing of the program's is on, and creates one in its place.
    private void endStream() {
        int device = device();
        int index = random.nextInt(STREAMS);
        long stream = streams[device][index];
        boolean isUsed = blocks.stream().anyMatch(block -> block.stream() == stream)
                || program.handedOver.stream().anyMatch(block -> block.stream() == stream)
                || graphs.stream().anyMatch(each -> each.stream == stream);
        if (!isUsed) {
            tried(() -> {
                program.memory.streamClosing(device, stream);
                return true;
            });
            driver.streams().destroy(device, stream);
            streams[device][index] = again(() -> driver.streams().create(device));
        }
    }

    /// Asks for figures.
    private void look() {
        int device = device();
        tried(() -> program.allocator.statistics(device));
        tried(() -> program.allocator.memoryStatistics(device));
        tried(() -> program.allocator.segments(device));
        tried(program.memory::liveBlocks);
    }

    /// Gives back all that it has.
    void end() {
        while (!blocks.isEmpty()) {
            free(blocks.removeLast());
        }
        buffers.forEach(this::closeBuffer);
        graphs.forEach(each -> each.graph.close());
        for (int device = 0; device < streams.length; device++) {
            driver.events().destroy(device, events[device]);
            for (long stream : streams[device]) {
                program.memory.streamClosing(device, stream);
                driver.streams().destroy(device, stream);
            }
        }
    }
}
