package io.cistern.locks;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.observability.MemorySnapshot;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.ServiceLoader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/// Random programs with graphs on several threads, while others allocate, trim, and ask for reports. Prints a line for
/// each thing that is wrong: an exception, a hang, a misuse of the GPU, memory that is left, two orders of locks.
///
/// Arguments: the number of seeds, the specs of allocators.
public final class GraphTraffic {
    private static final long CAPACITY = 4L << 30;
    private static final int OPERATIONS = 40;
    private static final int PATIENCE_SECONDS = 60;
    private static final long[] SIZES = {500, 6000, 100_000, 3 << 20};

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
            .open();
    private final List<GraphMemory> ofGraphs = Collections.synchronizedList(new ArrayList<>());
    private final List<String> wrong = Collections.synchronizedList(new ArrayList<>());
    private final long seed;

    private GraphTraffic(String spec, long seed) {
        this.seed = seed;
        memory.setCurrent(spec);
    }

    private static <T> List<T> all(Class<T> type) {
        return ServiceLoader.load(type).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    /// Runs all.
    public static void main(String[] args) throws Exception {
        for (int i = 1; i < args.length; i++) {
            for (long seed = 0; seed < Long.parseLong(args[0]); seed++) {
                GraphTraffic program = new GraphTraffic(args[i], seed);
                program.run();
                for (String each : program.wrong) {
                    System.out.println("WRONG " + args[i] + ", seed " + seed + ": " + each.replace("\n", " | "));
                }
            }
        }
        LockOrder.wrong().forEach(each -> System.out.println("WRONG " + each.replace("\n", " | ")));
        System.out.println("ENDED " + LockOrder.pairs());
        System.exit(0); // also beside threads that hang
    }

    private interface Body {
        void run(Random random, CudaStream stream) throws Exception;
    }

    private void run() throws Exception {
        List<Body> bodies = List.of(
                this::captures, this::captures, this::announced, this::allocates, (_, _) -> reports(), this::trims);
        CountDownLatch running = new CountDownLatch(bodies.size());
        List<Thread> threads = new ArrayList<>();
        for (Body body : bodies) {
            Random random = new Random(31 * seed + threads.size());
            threads.add(Thread.ofPlatform().daemon().start(() -> work(body, random, running)));
        }
        if (!running.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
            threads.forEach(each -> wrong.add("hangs at " + List.of(each.getStackTrace())));
            return;
        }
        if (wrong.isEmpty()) {
            end();
        }
    }

    private void work(Body body, Random random, CountDownLatch running) {
        try {
            for (int i = 0; i < OPERATIONS && wrong.isEmpty(); i++) {
                try (CudaStream stream = CudaStream.open(memory, 0)) { // each ends beside the others' work
                    body.run(random, stream);
                }
            }
        } catch (Throwable failure) {
            wrong.add(failure + " at " + List.of(failure.getStackTrace()));
        } finally {
            running.countDown();
        }
    }

    private long allocate(Random random, long stream) {
        long byteSize = SIZES[random.nextInt(SIZES.length)];
        long address = memory.allocate(byteSize, 0, stream);
        gpu.copies().fillBytes(0, address, (byte) 1, byteSize, stream);
        return address;
    }

    private void free(List<Long> blocks, long stream) {
        blocks.forEach(each -> memory.free(each, stream));
        blocks.clear();
    }

    /// Captures a graph, launches it or not, and closes it, maybe while it runs; its results are freed before or after.
    private void captures(Random random, CudaStream stream) {
        long handle = stream.handle();
        GraphMemory into = GraphMemory.of(memory);
        ofGraphs.add(into);
        List<Long> results = new ArrayList<>();
        long workspace = allocate(random, handle);
        CaptureMode mode = CaptureMode.values()[random.nextInt(CaptureMode.values().length)];
        try (GraphCapture capture = GraphCapture.begin(memory, 0, handle, mode, into)) {
            inCapture(random, handle, results);
            memory.free(workspace, handle);
            if (random.nextInt(5) == 0) {
                return; // abandoned; work may not use the results then
            }
            try (CudaGraph graph = capture.endAndInstantiate()) {
                for (int launches = random.nextInt(3); launches > 0; launches--) {
                    graph.launch(handle);
                }
                if (random.nextBoolean()) {
                    free(results, handle);
                }
            }
        } finally {
            if (random.nextBoolean()) {
                allocate(random, handle, 2);
            }
            free(results, handle);
        }
    }

    private void inCapture(Random random, long stream, List<Long> results) {
        for (int i = random.nextInt(6); i >= 0; i--) {
            long block = allocate(random, stream);
            if (random.nextInt(4) == 0) {
                results.add(block);
            } else {
                memory.free(block, stream);
            }
        }
    }

    private void allocate(Random random, long stream, int count) {
        List<Long> blocks = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            blocks.add(allocate(random, stream));
        }
        free(blocks, stream);
    }

    /// Captures as a library does.
    private void announced(Random random, CudaStream stream) {
        long handle = stream.handle();
        ofGraphs.add(GraphCapture.announce(memory, 0, handle));
        gpu.graphs().beginCapture(0, handle, CaptureMode.RELAXED);
        allocate(random, handle, 1 + random.nextInt(3));
        long graph = gpu.graphs().endCapture(0, handle);
        GraphCapture.announceEnd(memory, 0, handle, graph);
        long executable = gpu.graphs().instantiate(0, graph, random.nextBoolean());
        gpu.graphs().destroy(0, graph);
        for (int launches = random.nextInt(3); launches > 0; launches--) {
            gpu.graphs().launch(0, executable, handle);
        }
        gpu.graphs().destroyExecutable(0, executable);
    }

    private void allocates(Random random, CudaStream stream) {
        allocate(random, stream.handle(), 1 + random.nextInt(8));
    }

    private void reports() {
        memory.liveBlocks();
        GraphMemory.kept(memory);
        MemorySnapshot.take(memory);
        List.copyOf(ofGraphs).forEach(each -> each.statistics(0));
        List.copyOf(ofGraphs).forEach(GraphMemory::liveBlocks);
        memory.allocators().forEach(each -> each.memoryStatistics(0));
    }

    private void trims(Random random, CudaStream stream) {
        allocate(random, stream.handle(), 1);
        memory.trim(0, 0, random.nextBoolean() ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING);
        GraphMemory.collect(memory);
    }

    private void end() throws InterruptedException {
        for (int waits = 0; waits < 2000 && !ofGraphs.stream().allMatch(GraphMemory::isGone); waits++) {
            Thread.sleep(1);
        }
        expect(
                "graphs that are not gone",
                0,
                ofGraphs.stream().filter(each -> !each.isGone()).count());
        memory.trim(0, 0, TrimMode.SYNCHRONIZE);
        expect("live blocks", 0, memory.liveBlocks().size());
        expect("kept blocks", 0, GraphMemory.kept(memory).size());
        memory.close();
        gpu.graphs().trimMemory(0);
        expect("bytes of graphs", 0, gpu.graphs().memory(0, GraphMemoryAttribute.RESERVED_CURRENT));
        expect("free bytes", CAPACITY, gpu.memory().freeBytes(0));
        expect(
                "ranges of addresses freed",
                gpu.calls().of(DriverCall.MEM_ADDRESS_RESERVE),
                gpu.calls().of(DriverCall.MEM_ADDRESS_FREE));
        gpu.misuses().forEach(each -> wrong.add(each.toString()));
    }

    private void expect(String what, long expected, long actual) {
        if (expected != actual) {
            wrong.add(what + ": " + actual + ", not " + expected);
        }
    }
}
