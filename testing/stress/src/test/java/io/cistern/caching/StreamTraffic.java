package io.cistern.caching;

import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.cuda.Streams;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;

/// Threads that open streams, pass blocks to each other and end their streams while others still have their blocks, on
/// a
/// simulated GPU that gives an ended stream's handle to the next one, and whose streams lag behind the host. A thread
/// that receives a block has its stream wait for the sender's, and looks for the sender's words.
///
/// It is a program, too. Arguments: the first seed, the number of seeds, specs of allocators. It prints what is wrong.
public final class StreamTraffic {
    private static final long CAPACITY = 512L << 20;
    private static final int THREADS = 4;
    private static final int STREAMS_OF_A_THREAD = 12;
    private static final int STEPS_OF_A_STREAM = 12;
    private static final int MOST_BITS = 22;
    private static final int MOST_PASSED = 16;
    private static final long BUSY_NANOS = 50_000;
    private static final int WORDS = 4;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();
    private final Map<String, Long> heldBefore = gpu.heldObjects();
    private final DeviceMemory memory = RandomOperations.open(gpu);
    private final MemoryKernels kernels = MemoryKernels.load(gpu, 0);
    private final MemorySegment mismatches = gpu.memory().allocateHost(0, Long.BYTES);
    private final ConcurrentLinkedQueue<Passed> passed = new ConcurrentLinkedQueue<>();
    private final AtomicInteger words = new AtomicInteger();
    private final long seed;

    /// @param word what its first words hold
    /// @param written after they were written
    private record Passed(long address, int word, CudaEvent written) {}

    StreamTraffic(String spec, long seed) {
        this.seed = seed;
        memory.setCurrent(spec);
    }

    /// Runs all.
    public static void main(String[] args) throws Exception {
        long first = Long.parseLong(args[0]);
        for (int i = 2; i < args.length; i++) {
            int wrong = 0;
            for (long seed = first; seed < first + Long.parseLong(args[1]); seed++) {
                List<String> found = new StreamTraffic(args[i], seed).run();
                wrong += found.isEmpty() ? 0 : 1;
                for (String each : found) {
                    System.out.println(args[i] + " seed=" + seed + " WRONG " + each.replace("\n", " | "));
                }
            }
            System.out.println(args[i] + " seeds=" + first + "+" + args[1] + " wrong=" + wrong);
        }
    }

    /// Runs all threads; returns what was wrong.
    List<String> run() throws Exception {
        List<String> wrong = new ArrayList<>();
        try (ExecutorService executor = Executors.newFixedThreadPool(THREADS)) {
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                SplittableRandom random = new SplittableRandom(seed * THREADS + i);
                running.add(executor.submit(() -> work(random)));
            }
            for (Future<?> each : running) {
                each.get();
            }
        }
        end(wrong);
        return wrong;
    }

    private Void work(SplittableRandom random) throws Exception {
        for (int i = 0; i < STREAMS_OF_A_THREAD; i++) {
            if (random.nextInt(4) > 0) {
                try (CudaStream stream = CudaStream.open(memory, 0)) {
                    steps(random, stream);
                }
            } else {
                FutureTask<Void> steps = new FutureTask<>(
                        () -> steps(random, CudaStream.ofForeign(memory, 0, Streams.PER_THREAD_DEFAULT)), null);
                Thread.ofPlatform().start(steps).join();
                steps.get();
            }
        }
        return null;
    }

    private void steps(SplittableRandom random, CudaStream stream) {
        for (int step = 0; step < STEPS_OF_A_STREAM; step++) {
            step(random, stream);
        }
    }

    private void step(SplittableRandom random, CudaStream stream) {
        switch (random.nextInt(10)) {
            case 0, 1, 2 -> send(random, stream);
            case 3, 4, 5 -> receive(random, stream);
            case 6, 7 -> memory.free(allocate(random, stream).address, stream.handle());
            case 8 -> gpu.keepBusy(0, stream.handle(), BUSY_NANOS);
            default -> {
                if (random.nextInt(8) == 0) {
                    memory.trim(0, 0, random.nextBoolean() ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING);
                } else {
                    gpu.passTime(BUSY_NANOS);
                }
            }
        }
    }

    private record Block(long address, int word) {}

    private Block allocate(SplittableRandom random, CudaStream stream) {
        long byteSize = random.nextLong(1L << random.nextInt(5, MOST_BITS)) + WORDS * Integer.BYTES;
        long address = memory.allocate(byteSize, 0, stream.handle());
        int word = words.incrementAndGet();
        gpu.copies().fillWords(0, address, word, WORDS, stream.handle());
        return new Block(address, word);
    }

    private void send(SplittableRandom random, CudaStream stream) {
        if (passed.size() >= MOST_PASSED) {
            receive(random, stream);
            return;
        }
        Block block = allocate(random, stream);
        passed.add(
                new Passed(block.address, block.word, CudaEvent.open(memory, 0).record(stream)));
    }

    /// Looks at another's block and frees it, or passes it on.
    private void receive(SplittableRandom random, CudaStream stream) {
        Passed block = passed.poll();
        if (block == null) {
            return;
        }
        stream.await(block.written);
        kernels.countMismatches(block.address, WORDS, block.word, mismatches.address(), stream.handle());
        block.written.close();
        int choice = random.nextInt(8);
        if (choice == 0) {
            memory.recordUse(block.address, stream.handle());
            passed.add(new Passed(
                    block.address, block.word, CudaEvent.open(memory, 0).record(stream)));
            return;
        }
        if (choice > 1) {
            memory.free(block.address, stream.handle());
            return;
        }
        try (CudaEvent end = CudaEvent.open(memory, 0).record(stream)) {
            memory.freeAfter(block.address, end.handle());
        }
    }

    private void end(List<String> wrong) {
        SplittableRandom random = new SplittableRandom(seed);
        try (CudaStream stream = CudaStream.open(memory, 0)) {
            while (!passed.isEmpty()) {
                receive(random, stream);
            }
        }
        gpu.devices().synchronize(0);
        expect(wrong, "words of others", 0L, mismatches.get(ValueLayout.JAVA_LONG, 0));
        expect(wrong, "live blocks", List.of(), memory.liveBlocks());
        memory.close();
        kernels.close();
        gpu.memory().freeHost(0, mismatches);
        expect(wrong, "misuses", List.of(), gpu.misuses());
        expect(wrong, "free bytes", CAPACITY, gpu.memory().freeBytes(0));
        expect(wrong, "held", heldBefore, gpu.heldObjects());
        gpu.close();
    }

    private static void expect(List<String> wrong, String what, Object expected, Object found) {
        if (!expected.equals(found)) {
            wrong.add(what + ": " + found);
        }
    }
}
