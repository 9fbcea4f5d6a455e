package io.cistern.caching;

import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.MemoryPool;
import io.cistern.caching.internal.check.VerifiableAllocator;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.SplittableRandom;
import java.util.TreeMap;

/// Random operations on a simulated GPU whose streams lag behind the host: allocations, frees on the block's stream and
/// on others, uses on others, trims, streams that end, refusals for want of memory. No two live blocks overlap, no
/// stream finds words that another block's stream wrote, and each check of the whole holds.
///
/// It is a program, too. Arguments: a seed, the number of operations, specs of allocators. It prints a line for each.
public final class RandomOperations {
    private static final long CAPACITY = 256L << 20;
    private static final int MOST_BITS = 24;
    private static final long BUSY_NANOS = 20_000;
    private static final int WORDS = 4;

    /// @param word what its first words hold; a block that is smaller than a word holds nothing
    private record Block(long address, long byteSize, CudaStream stream, int word) {
        long words() {
            return Math.min(byteSize / Integer.BYTES, WORDS);
        }
    }

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();
    private final Map<String, Long> heldBefore = gpu.heldObjects();
    private final DeviceMemory memory = open(gpu);
    private final MemoryKernels kernels = MemoryKernels.load(gpu, 0);
    private final MemorySegment mismatches = gpu.memory().allocateHost(0, Long.BYTES);
    private final CudaStream[] streams = new CudaStream[3];
    private final MemoryPool pool;
    private final SplittableRandom random;
    private final List<Block> live = new ArrayList<>();
    private final TreeMap<Long, Long> ends = new TreeMap<>();
    private long liveBytes;

    /// What the program needs just now, more or less.
    private long wantedBytes;

    private int word;
    private long refusals;
    private boolean canSleep = true;

    RandomOperations(String spec, long seed) {
        random = new SplittableRandom(seed);
        memory.listeners().onCompaction(WorkPause.ofOneThread());
        pool = MemoryPool.builder(memory).spec(spec).open();
        for (int i = 0; i < streams.length; i++) {
            streams[i] = CudaStream.open(memory, 0);
        }
    }

    /// Opens device memory with all allocators and sources of the class path.
    static DeviceMemory open(SimulatedGpu gpu) {
        return DeviceMemory.builder(gpu)
                .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                .open();
    }

    private static <T> List<T> all(Class<T> type) {
        return ServiceLoader.load(type).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    /// Runs all.
    public static void main(String[] args) {
        long seed = Long.parseLong(args[0]);
        long operations = Long.parseLong(args[1]);
        for (int i = 2; i < args.length; i++) {
            long start = System.nanoTime();
            long refusals = new RandomOperations(args[i], seed).run(operations, 10_000);
            long seconds = (System.nanoTime() - start) / 1_000_000_000;
            System.out.println(args[i] + " seed=" + seed + " operations=" + operations + " refusals=" + refusals
                    + " passed seconds=" + seconds);
        }
    }

    /// Runs operations, then frees and closes everything, after which nothing may be left.
    ///
    /// @param operationsACheck after how many the whole is checked
    /// @return how many requests were refused
    long run(long operations, long operationsACheck) {
        for (long i = 1; i <= operations; i++) {
            operate();
            if (i % operationsACheck == 0) {
                check();
            }
        }
        while (!live.isEmpty()) {
            free();
        }
        check();
        end();
        return refusals;
    }

    private void operate() {
        int dice = random.nextInt(1000);
        if (dice < 900) {
            boolean grows = random.nextInt(100) < (liveBytes < wantedBytes ? 60 : 40);
            if (grows) {
                allocate();
            } else {
                free();
            }
        } else if (dice < 950) {
            useElsewhere();
        } else if (dice < 980) {
            gpu.keepBusy(0, stream().handle(), BUSY_NANOS);
        } else if (dice < 993) {
            gpu.passTime(BUSY_NANOS);
        } else if (dice < 994) {
            capture();
        } else if (dice < 995) {
            if (random.nextInt(16) == 0) { // it copies all
                moveLiveMemory();
            }
        } else if (dice < 997) {
            endAStream();
        } else if (dice < 999) {
            pool.trim(0, random.nextLong(CAPACITY), TrimMode.WITHOUT_WAITING);
        } else {
            boolean isTooMuch = random.nextInt(20) == 0;
            wantedBytes = isTooMuch ? 2 * CAPACITY : random.nextLong(CAPACITY / 2);
        }
    }

    private CudaStream stream() {
        return streams[random.nextInt(streams.length)];
    }

    private void allocate() {
        long byteSize = random.nextLong(1L << random.nextInt(MOST_BITS)) + 1;
        CudaStream stream = stream();
        long address;
        try {
            address = pool.allocate(byteSize, 0, stream.handle());
        } catch (DeviceOutOfMemoryException full) {
            require(!live.isEmpty(), "memory is in use: ", full.getMessage());
            refusals++;
            return;
        }
        var below = ends.floorEntry(address + byteSize - 1);
        require(below == null || below.getValue() <= address, "no overlap: ", address);
        Block block = new Block(address, byteSize, stream, ++word);
        if (block.words() > 0) {
            gpu.copies().fillWords(0, address, word, block.words(), stream.handle());
        }
        ends.put(address, address + byteSize);
        live.add(block);
        liveBytes += byteSize;
    }

    private void free() {
        if (live.isEmpty()) {
            return;
        }
        Block block = takeOne();
        CudaStream on = random.nextInt(8) == 0 ? stream() : block.stream;
        look(block, on);
        if (random.nextInt(16) > 0) {
            memory.free(block.address, on.handle());
            return;
        }
        try (CudaEvent event = CudaEvent.open(memory, 0)) {
            memory.freeAfter(block.address, event.record(on).handle());
        }
    }

    private Block takeOne() {
        int at = random.nextInt(live.size());
        Block block = live.get(at);
        Block last = live.removeLast();
        if (at < live.size()) {
            live.set(at, last);
        }
        ends.remove(block.address);
        liveBytes -= block.byteSize;
        return block;
    }

    /// Has a stream wait for a block's, and count words that are not the block's.
    private void look(Block block, CudaStream on) {
        if (on != block.stream) {
            on.await(block.stream);
        }
        if (block.words() > 0) {
            kernels.countMismatches(block.address, block.words(), block.word, mismatches.address(), on.handle());
        }
    }

    private void useElsewhere() {
        if (!live.isEmpty()) {
            Block block = live.get(random.nextInt(live.size()));
            CudaStream on = stream();
            look(block, on);
            memory.recordUse(block.address, on.handle());
        }
    }

    /// Captures work on blocks of a graph, and launches it.
    private void capture() {
        CudaStream on = stream();
        try (GraphCapture capture = GraphCapture.begin(on, CaptureMode.RELAXED)) {
            for (int i = random.nextInt(1, 4); i > 0; i--) {
                long address = pool.allocate(random.nextLong(1, 1 << 18), 0, on.handle());
                gpu.copies().fillBytes(0, address, (byte) 1, 1, on.handle());
                memory.free(address, on.handle());
            }
            try (CudaGraph graph = capture.endAndInstantiate()) {
                graph.launch(on);
            }
        } catch (DeviceOutOfMemoryException full) {
            refusals++;
        }
    }

    /// Puts the pool to sleep and wakes it, or compacts it.
    private void moveLiveMemory() {
        if (!canSleep || random.nextBoolean()) {
            pool.compact(0);
            return;
        }
        try {
            pool.sleep(SleepMode.KEEP);
            if (!live.isEmpty()) {
                Block block = takeOne();
                memory.free(block.address, block.stream.handle());
            }
            pool.wake();
        } catch (UnsupportedOperationException never) {
            canSleep = false;
        }
    }

    /// Ends a stream, whose blocks belong to another from then on.
    private void endAStream() {
        int at = random.nextInt(streams.length);
        CudaStream ending = streams[at];
        CudaStream heir = CudaStream.open(memory, 0);
        heir.await(ending);
        live.replaceAll(
                block -> block.stream == ending ? new Block(block.address, block.byteSize, heir, block.word) : block);
        ending.close();
        streams[at] = heir;
    }

    private void check() {
        gpu.devices().synchronize(0);
        GraphMemory.collect(memory);
        require(mismatches.get(ValueLayout.JAVA_LONG, 0) == 0, "words as written: ", mismatches);
        require(gpu.misuses().isEmpty(), "no misuse: ", gpu.misuses());
        var statistics = pool.statistics(0);
        require(statistics.liveBlocks() == live.size(), "live blocks: ", statistics);
        require(statistics.requestedBytes() == liveBytes, "live bytes: ", statistics);
        require(statistics.reservedBytes().orElse(liveBytes) >= liveBytes, "reserved bytes: ", statistics);
        pool.extension(VerifiableAllocator.class).ifPresent(VerifiableAllocator::checkInvariants);
    }

    private void end() {
        for (CudaStream each : streams) {
            each.close();
        }
        memory.close();
        kernels.close();
        gpu.memory().freeHost(0, mismatches);
        require(
                gpu.memory().freeBytes(0) == CAPACITY,
                "all memory is free: ",
                gpu.memory().info(0));
        require(gpu.heldObjects().equals(heldBefore), "nothing more is held: ", gpu.heldObjects());
        require(gpu.misuses().isEmpty(), "no misuse: ", gpu.misuses());
        gpu.close();
    }

    private static void require(boolean holds, String what, Object found) {
        if (!holds) {
            throw new AssertionError(what + found);
        }
    }
}
