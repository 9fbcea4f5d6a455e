package io.cistern.faults;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.ServiceLoader;

/// Threads that allocate and free with hardly any stack left, and what must hold afterwards: the program in a JVM
/// of its own. Arguments: the specs of allocators. Prints a line for each thing that is wrong, and in the end how
/// often the stack was full.
public final class StackStorm {
    private static final long LIMIT = 1L << 30;
    private static final int ROUNDS = Boolean.getBoolean("cistern.stress.long") ? 1_500 : 200;
    /// An interpreter does not get faster.
    private static final int WARM_UP_CALLS =
            System.getProperty("java.vm.info").startsWith("interpreted") ? 1_000 : 30_000;
    private static final int THREADS = 2;
    private static final int MAX_LIVE = 64;
    private static final long PATIENCE_MILLIS = 30_000;
    private static final long STACK_BYTES = 256 << 10;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(8L << 30).build();
    private final MemoryLimit limit = MemoryLimit.of("limit", LIMIT);
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
            .limit(limit)
            .open();
    private final long stream = gpu.streams().create(0);
    private final Allocator allocator;

    private StackStorm(String spec) {
        allocator = memory.setCurrent(spec);
    }

    private static <T> List<T> all(Class<T> type) {
        return ServiceLoader.load(type).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    /// Runs all.
    public static void main(String[] specs) throws Exception {
        int overflows = 0;
        for (String spec : specs) {
            for (boolean virtual : new boolean[] {false, true}) {
                System.out.println("STORM " + spec);
                overflows += new StackStorm(spec).run(spec + (virtual ? " virtual" : ""), virtual);
            }
        }
        System.out.println("OVERFLOWS " + overflows);
        System.exit(0); // also beside threads that hang
    }

    private int run(String name, boolean virtual) throws InterruptedException {
        Worker first = new Worker(0);
        ended(name + " warms up", thread(virtual, first::warmUp), first);
        List<Worker> workers = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int seed = 1; seed <= THREADS; seed++) {
            Worker worker = new Worker(seed);
            workers.add(worker);
            threads.add(thread(virtual, worker));
        }
        for (int i = 0; i < THREADS; i++) {
            ended(name + " storms", threads.get(i), workers.get(i));
        }
        Worker last = workers.getLast(); // makes no more rounds
        ended(name + " uses the whole limit", thread(false, () -> useLimit(name)), last);
        ended(name + " closes", thread(false, () -> close(name)), last);
        return workers.stream().mapToInt(worker -> worker.overflows).sum();
    }

    private static Thread thread(boolean virtual, Runnable body) {
        Thread thread = virtual ? Thread.ofVirtual().unstarted(body) : new Thread(null, body, "storm", STACK_BYTES);
        if (!virtual) {
            thread.setDaemon(true);
        }
        thread.start();
        return thread;
    }

    /// Waits for a thread as long as its worker gets on, however slow the machine is.
    private static void ended(String what, Thread thread, Worker worker) throws InterruptedException {
        for (int before = -1; thread.isAlive() && worker.rounds != before; ) {
            before = worker.rounds;
            thread.join(PATIENCE_MILLIS);
        }
        if (thread.isAlive()) {
            System.out.println("WRONG " + what + " hangs " + List.of(thread.getStackTrace()));
        }
    }

    /// Blocks that were lost in the storm are freed first: they are still known.
    private void useLimit(String name) {
        for (LiveBlock lost : memory.liveBlocks()) {
            memory.free(lost.address(), stream);
        }
        if (limit.usedBytes() != 0) {
            System.out.println("WRONG " + name + " limit keeps " + limit.usedBytes());
        }
        if (allocator.statistics(0).liveBlocks() != 0 || allocator.statistics(0).requestedBytes() != 0) {
            System.out.println("WRONG " + name + " counts " + allocator.statistics(0));
        }
        memory.free(memory.allocate(LIMIT, 0, stream), stream);
    }

    private void close(String name) {
        allocator.close();
        if (!allocator.isDrained()) {
            System.out.println("WRONG " + name + " has not drained");
        }
        memory.close();
    }

    private final class Worker implements Runnable {
        private final Random random;
        private final Deque<Long> live = new ArrayDeque<>();
        private int depth;
        int overflows;

        /// Only the worker changes it.
        volatile int rounds;

        Worker(int seed) {
            random = new Random(seed);
        }

        void warmUp() {
            for (int call = 0; call < WARM_UP_CALLS; call++) {
                rounds = call;
                work();
            }
            live.forEach(address -> memory.free(address, stream));
        }

        @Override
        public void run() {
            for (int round = 0; round < ROUNDS; round++) {
                rounds = round;
                depth = 0;
                try {
                    descend(Integer.MAX_VALUE);
                } catch (StackOverflowError _) {
                    // how deep it is
                }
                try {
                    descend(depth - random.nextInt(60));
                } catch (StackOverflowError _) {
                    overflows++;
                }
            }
        }

        private void descend(int calls) {
            depth++;
            if (calls <= 0) {
                work();
            } else {
                descend(calls - 1);
            }
        }

        private void work() {
            if (live.size() < MAX_LIVE && random.nextBoolean()) {
                long byteSize = random.nextInt(8) == 0 ? 1 << 20 : 512L << random.nextInt(6);
                live.push(memory.allocate(byteSize, 0, stream));
            } else if (!live.isEmpty()) {
                memory.free(live.pop(), stream);
            }
        }
    }
}
