package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.DiscoveredCatalog;
import io.cistern.testkit.Patterns;
import io.cistern.testkit.Seed;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Sixteen threads use one device for a long time, by way of the current allocator, pools that they open and close, a
/// pool that sleeps, and one whose source fails now and then, while another thread swaps the current allocator, trims,
/// compacts, and puts the pool to sleep. No two live blocks overlap, contents are checked, and nothing is left.
///
/// `cistern.testkit.soak.seconds` says for how long; `cistern.testkit.soak.file` names a table of what was in use in
/// each second.
@Tag("soak")
public class Soak {
    private static final int THREADS = 16;
    private static final int STREAMS = 4;
    private static final int STEPS = 20;
    private static final List<String> CURRENT =
            List.of("caching", "async", "caching:fit=tight", "async:release_threshold=keep_all", "caching:reuse=wait");
    private static final long MIB = 1L << 20;
    private static final long HOLE = 6 * MIB;
    private static final long LARGE = 512 * MIB;
    private static final int HOLES = 8;

    private final int seconds = Integer.getInteger("cistern.testkit.soak.seconds", 5);
    private final CudaDriver driver = DriverUnderTest.open();
    private final long mostBytes = driver.simulated() ? 64 * MIB : 1024 * MIB;
    private final DeviceMemory memory = DeviceMemory.builder(driver)
            .catalog(DiscoveredCatalog.find())
            .limitBytes(THREADS * mostBytes)
            .open();
    private final ConcurrentNavigableMap<Long, Long> ends = new ConcurrentSkipListMap<>();
    private final long[] streams = new long[STREAMS];
    private final long end = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
    /// Threads that work hold its shared side; whoever needs the program to rest takes the other.
    private final ReentrantReadWriteLock work = new ReentrantReadWriteLock();

    private final LongAdder operations = new LongAdder();
    private final LongAdder refusals = new LongAdder();
    private final LongAdder poolsOpened = new LongAdder();
    private final LongAdder compactions = new LongAdder();
    private final LongAdder movedPages = new LongAdder();
    private final LongAdder sleeps = new LongAdder();
    private final LongAdder swaps = new LongAdder();
    private final LongAdder failures = new LongAdder();
    private final AtomicLong requests = new AtomicLong();

    /// For JUnit.
    public Soak() {}

    @Test
    void nothingIsSpoiltOrLeft() throws Exception {
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = driver.streams().create(0);
        }
        Registration pause = memory.listeners().onCompaction(WorkPause.of(work));
        try (Patterns patterns = new Patterns(driver, 0)) {
            run(patterns);
            assertThat(patterns.mismatches()).as(Seed.describe(Seed.current())).isEmpty();
        }
        pause.close();
        for (long stream : streams) {
            memory.streamClosing(0, stream);
            driver.streams().destroy(0, stream);
        }
        System.out.printf(
                "soak: %d s, %d operations, %d requests refused, %d calls of a source failed, %d pools opened, %d swaps, "
                        + "%d compactions moved %d pages, %d sleeps%n",
                seconds,
                operations.sum(),
                refusals.sum(),
                failures.sum(),
                poolsOpened.sum(),
                swaps.sum(),
                compactions.sum(),
                movedPages.sum(),
                sleeps.sum());
        if (compactions.sum() > 0) {
            assertThat(movedPages.sum()).isPositive();
        }
        assertThat(memory.liveBlocks()).isEmpty();
        assertNothingIsReserved();
        memory.close();
        driver.close();
        if (driver instanceof SimulatedGpu simulated) {
            assertThat(simulated.misuses()).isEmpty();
        }
    }

    private void assertNothingIsReserved() {
        driver.devices().synchronize(0);
        for (Allocator allocator : memory.allocators()) {
            allocator.trim(0, 0, TrimMode.SYNCHRONIZE);
            assertThat(allocator.reservedBytes(0).orElse(0))
                    .as(allocator.name())
                    .isZero();
        }
    }

    private void run(Patterns patterns) throws Exception {
        try (MemoryPool sleeper = MemoryPool.builder(memory).spec("caching").open();
                MemoryPool failing = MemoryPool.builder(memory)
                        .functions(
                                this::failNowAndThen,
                                (address, _, device) -> driver.memory().free(device, address))
                        .open();
                ExecutorService executor = Executors.newFixedThreadPool(THREADS + 1)) {
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                long seed = Seed.current() + i;
                SharedStreamsProgram program = new SharedStreamsProgram(
                        driver, memory, patterns, ends, streams, seed, Integer.MAX_VALUE, mostBytes / 2);
                running.add(executor.submit(() -> work(program, new SplittableRandom(seed), sleeper, failing)));
            }
            running.add(executor.submit(() -> disturb(sleeper, patterns)));
            sample();
            for (Future<?> each : running) {
                each.get();
            }
        }
    }

    private long failNowAndThen(long byteSize, int device) {
        if (requests.incrementAndGet() % 7 != 0) {
            return driver.memory().allocate(device, byteSize);
        }
        failures.increment();
        return 0;
    }

    private void work(SharedStreamsProgram program, SplittableRandom random, MemoryPool sleeper, MemoryPool failing) {
        while (System.nanoTime() < end) {
            switch (random.nextInt(8)) {
                case 0, 1 -> within(sleeper, program);
                case 2 -> within(failing, program);
                case 3 -> withinItsOwn(program);
                default -> steps(program);
            }
        }
        program.finish();
    }

    private void withinItsOwn(SharedStreamsProgram program) {
        poolsOpened.increment();
        try (MemoryPool own = MemoryPool.builder(memory).spec("caching").open()) {
            within(own, program);
        }
    }

    private void within(MemoryPool pool, SharedStreamsProgram program) {
        try (Scope _ = pool.enter()) {
            steps(program);
        }
    }

    private void steps(SharedStreamsProgram program) {
        work.readLock().lock();
        try {
            for (int i = 0; i < STEPS; i++) {
                program.step();
            }
        } catch (DeviceOutOfMemoryException _) {
            refusals.increment();
        } finally {
            work.readLock().unlock();
            operations.add(STEPS);
        }
    }

    private void disturb(MemoryPool sleeper, Patterns patterns) {
        SplittableRandom random = new SplittableRandom(Seed.current());
        while (System.nanoTime() < end) {
            switch (random.nextInt(4)) {
                case 0 -> {
                    memory.setCurrent(CURRENT.get(random.nextInt(CURRENT.size())));
                    swaps.increment();
                }
                case 1 -> memory.trim(0, random.nextLong(THREADS * mostBytes), TrimMode.WITHOUT_WAITING);
                case 2 -> {
                    sleeper.compact(0);
                    compactAroundHoles(patterns, random.nextInt());
                }
                default -> sleepAndWake(sleeper);
            }
            pauseFor(100);
        }
    }

    /// Frees every other block of a pool with large pages, and moves the rest while nobody works.
    private void compactAroundHoles(Patterns patterns, int contents) {
        long stream = streams[0];
        try (MemoryPool pool = MemoryPool.builder(memory).spec("caching").open()) {
            memory.free(pool.allocate(LARGE, 0, stream), stream); // makes pages large
            pool.trim(0, 0, TrimMode.SYNCHRONIZE);
            List<Long> blocks = new ArrayList<>();
            for (int i = 0; i < HOLES * 2; i++) {
                blocks.add(pool.allocate(HOLE, 0, stream));
                patterns.write(blocks.getLast(), HOLE, contents + i, stream);
            }
            verifyAndFree(patterns, blocks, contents, 1);
            CompactionResult result = pool.compact(0);
            compactions.increment();
            movedPages.add(result.pages());
            verifyAndFree(patterns, blocks, contents, 0);
        }
    }

    private void verifyAndFree(Patterns patterns, List<Long> blocks, int contents, int first) {
        for (int i = first; i < blocks.size(); i += 2) {
            patterns.verify(blocks.get(i), HOLE, contents + i, streams[0]);
            memory.free(blocks.get(i), streams[0]);
        }
    }

    private void sleepAndWake(MemoryPool sleeper) {
        work.writeLock().lock();
        try {
            sleeper.sleep(SleepMode.KEEP);
            sleeper.wake();
            sleeps.increment();
        } finally {
            work.writeLock().unlock();
        }
    }

    /// Writes what is in use in each second, if a file is named.
    private void sample() throws IOException {
        String file = System.getProperty("cistern.testkit.soak.file");
        if (file == null) {
            return;
        }
        try (PrintWriter table = new PrintWriter(Files.newBufferedWriter(Path.of(file)))) {
            table.println(
                    "second,operations,refusals,requestedBytes,reservedBytes,deviceBytes,residentBytes,heapBytes");
            for (int second = 1; System.nanoTime() < end; second++) {
                pauseFor(1000);
                long reserved = 0;
                for (Allocator allocator : memory.allocators()) {
                    reserved += allocator.reservedBytes(0).orElse(0);
                }
                Runtime runtime = Runtime.getRuntime();
                table.printf(
                        "%d,%d,%d,%d,%d,%d,%d,%d%n",
                        second,
                        operations.sum(),
                        refusals.sum(),
                        memory.statistics(0).requestedBytes(),
                        reserved,
                        driver.devices().totalBytes(0) - driver.memory().freeBytes(0),
                        residentBytes(),
                        runtime.totalMemory() - runtime.freeMemory());
            }
        }
    }

    private static long residentBytes() throws IOException {
        String pages = Files.readString(Path.of("/proc/self/statm")).split(" ")[1];
        return Long.parseLong(pages) * 4096;
    }

    private static void pauseFor(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}
