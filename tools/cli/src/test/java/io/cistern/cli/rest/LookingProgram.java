package io.cistern.cli.rest;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.DiscoveredCatalog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/// A program on a device that is nearly full of blocks in pieces. Some threads free blocks between others and ask for
/// more than any free piece; the others never allocate, and look at blocks that stay: by a buffer, by the bare
/// address, by a kernel and by a graph.
final class LookingProgram {
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 2048 * MIB;
    private static final long BLOCK = 24 * MIB;

    /// What is filled and looked at of a block.
    private static final long FILLED = 4096;
    private static final int BLOCKS = 64;
    private static final int ROUNDS = 3;
    private static final long HANGS_SECONDS = 60;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(DiscoveredCatalog.find()).open();
    private final SplittableRandom random;
    private final int allocating;
    private final Resting.Rules rules;
    private final long stream = gpu.streams().create(0);
    private final long counter = gpu.memory().allocate(0, FILLED);
    private final long scratch = gpu.memory().allocate(0, FILLED);
    private final List<DeviceBuffer> blocks = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private final List<Runnable> ends = new ArrayList<>();
    private final AtomicBoolean isOver = new AtomicBoolean();
    private final AtomicInteger served = new AtomicInteger();
    private final AtomicLong looks = new AtomicLong();
    private final Set<String> wrong = new ConcurrentSkipListSet<>();
    private final Set<String> refusals = new ConcurrentSkipListSet<>();

    /// What a program did.
    ///
    /// @param served large requests that found memory
    /// @param moved pages that were exchanged under live blocks
    /// @param looks how often a thread looked at a block
    /// @param refusals what refused requests said
    /// @param wrong all that must not be
    record Outcome(int served, long moved, long looks, Set<String> refusals, Set<String> wrong) {}

    private interface Look {
        /// Returns the first word of a block.
        int word(int block);
    }

    /// @param allocating how many threads allocate
    LookingProgram(String spec, Resting resting, int allocating, long seed) {
        this.allocating = allocating;
        this.rules = resting.rules(allocating + 4);
        this.random = new SplittableRandom(seed);
        memory.setCurrent(spec);
    }

    Outcome run() throws InterruptedException {
        memory.free(memory.allocate(BLOCKS * BLOCK, 0, stream), stream); // pages are large from now on
        memory.trim(0, 0, TrimMode.SYNCHRONIZE);
        for (int i = 0; i < BLOCKS; i++) {
            blocks.add(filled(i));
        }
        Registration pause =
                rules.pause() == null ? () -> {} : memory.listeners().onCompaction(rules.pause());
        try (Arena arena = Arena.ofShared()) {
            List<Look> ways = List.of(byBuffer(arena), byAddress(arena), byKernel(arena), byGraph(arena));
            CountDownLatch looking = new CountDownLatch(ways.size());
            for (Look look : ways) {
                start(look, random.split(), looking);
            }
            looking.await();
            List<Thread> asking = new ArrayList<>();
            for (int i = 0; i < allocating; i++) {
                asking.add(start(i, random.split()));
            }
            join(asking);
            isOver.set(true);
            join(threads);
        }
        Map<String, Long> figures = memory.current(0).memoryStatistics(0);
        if (wrong.isEmpty()) {
            pause.close();
            end();
        }
        return new Outcome(
                served.get(),
                figures.getOrDefault("pages.split", 0L),
                looks.get(),
                new TreeSet<>(refusals),
                new TreeSet<>(wrong));
    }

    private DeviceBuffer filled(int number) {
        DeviceBuffer block = DeviceBuffer.allocate(memory, BLOCK, 0, stream);
        block.slice(0, FILLED).fillWords(number + 1);
        gpu.streams().synchronize(0, stream);
        return block;
    }

    private void start(Look look, SplittableRandom own, CountDownLatch looking) {
        int number = threads.size() + allocating;
        threads.add(start(() -> {
            looking.countDown();
            while (!isOver.get()) {
                int block = 2 * own.nextInt(BLOCKS / 2);
                rules.work(number, () -> look(look, block));
                Thread.onSpinWait();
            }
        }));
    }

    private void look(Look look, int block) {
        looks.incrementAndGet();
        if (look.word(block) != block + 1) {
            wrong.add("wrong bytes");
        }
    }

    private Thread start(int number, SplittableRandom own) {
        return start(() -> {
            long ownStream = gpu.streams().create(0);
            for (int round = 0; round < ROUNDS; round++) {
                rules.work(number, () -> ask(number, own, ownStream));
            }
        });
    }

    /// Frees the blocks of its own, and asks for nearly all that is free then.
    private void ask(int number, SplittableRandom own, long ownStream) {
        List<Integer> freed = new ArrayList<>();
        for (int i = 1 + 2 * number; i < BLOCKS; i += 2 * allocating) {
            blocks.get(i).close();
            freed.add(i);
        }
        try (DeviceBuffer large = DeviceBuffer.allocate(
                memory, (512 + 768 / allocating) * (90 + own.nextInt(7)) / 100 * MIB, 0, ownStream)) {
            large.slice(large.byteSize() / 2, FILLED).fill((byte) 7);
            served.incrementAndGet();
        } catch (DeviceOutOfMemoryException refused) {
            refusals.add(String.valueOf(refused.getMessage()));
        }
        gpu.streams().synchronize(0, ownStream);
        memory.trim(0, 0, TrimMode.SYNCHRONIZE);
        freed.forEach(this::refill);
    }

    /// The other thread may have taken the room; then the block stays closed for a round.
    private void refill(int number) {
        try {
            blocks.set(number, filled(number));
        } catch (DeviceOutOfMemoryException refused) {
            refusals.add(String.valueOf(refused.getMessage()));
        }
    }

    private Thread start(Runnable work) {
        return Thread.ofPlatform().daemon().start(() -> {
            try {
                work.run();
            } catch (RuntimeException | Error failure) {
                wrong.add(String.valueOf(failure).replaceAll("0x[0-9a-f]+|\\d+", "N"));
            }
        });
    }

    private void join(List<Thread> each) throws InterruptedException {
        for (Thread thread : each) {
            if (!thread.join(Duration.ofSeconds(HANGS_SECONDS))) {
                wrong.add("hangs: " + List.of(thread.getStackTrace()));
            }
        }
    }

    private Look byBuffer(Arena arena) {
        long own = gpu.streams().create(0);
        MemorySegment host = arena.allocate(ValueLayout.JAVA_INT);
        return block -> {
            blocks.get(block).slice(0, Integer.BYTES).copyTo(host, own, CopyMode.BLOCKING);
            return host.get(ValueLayout.JAVA_INT, 0);
        };
    }

    private Look byAddress(Arena arena) {
        long own = gpu.streams().create(0);
        MemorySegment host = arena.allocate(ValueLayout.JAVA_INT);
        return block -> {
            gpu.copies().toHost(0, host, blocks.get(block).address(), Integer.BYTES, own);
            gpu.streams().synchronize(0, own);
            return host.get(ValueLayout.JAVA_INT, 0);
        };
    }

    private Look byKernel(Arena arena) {
        long own = gpu.streams().create(0);
        MemoryKernels kernels = MemoryKernels.load(gpu, 0);
        MemorySegment host = arena.allocate(ValueLayout.JAVA_LONG);
        ends.add(kernels::close);
        return block -> {
            gpu.copies().fillBytes(0, counter, (byte) 0, Long.BYTES, own);
            kernels.countMismatches(blocks.get(block).address(), FILLED / Integer.BYTES, block + 1, counter, own);
            gpu.copies().toHost(0, host, counter, Long.BYTES, own);
            gpu.streams().synchronize(0, own);
            return host.get(ValueLayout.JAVA_LONG, 0) == 0 ? block + 1 : 0;
        };
    }

    /// A graph for each block, captured before.
    private Look byGraph(Arena arena) {
        long own = gpu.streams().create(0);
        MemorySegment host = arena.allocate(ValueLayout.JAVA_INT);
        List<CudaGraph> graphs = new ArrayList<>();
        for (DeviceBuffer block : blocks) {
            try (GraphCapture capture = GraphCapture.begin(memory, 0, own, CaptureMode.THREAD_LOCAL)) {
                gpu.copies().onDevice(0, scratch, block.address(), Integer.BYTES, own);
                graphs.add(capture.endAndInstantiate());
            }
        }
        ends.add(() -> graphs.forEach(CudaGraph::close));
        return block -> {
            graphs.get(block).launch(own);
            gpu.copies().toHost(0, host, scratch, Integer.BYTES, own);
            gpu.streams().synchronize(0, own);
            return host.get(ValueLayout.JAVA_INT, 0);
        };
    }

    private void end() {
        blocks.forEach(DeviceBuffer::close);
        ends.forEach(Runnable::run);
        memory.close();
        gpu.memory().free(0, counter);
        gpu.memory().free(0, scratch);
        gpu.misuses().forEach(misuse -> wrong.add("misuse " + misuse.kind() + " by " + misuse.call()));
    }
}
