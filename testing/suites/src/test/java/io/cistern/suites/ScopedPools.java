package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.ScopeCarrier;
import io.cistern.ScopeOptions;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCall;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.DiscoveredCatalog;
import io.cistern.testkit.Patterns;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Scopes, pools and swaps over real memory: nested scopes on several threads and streams, contents checked,
/// and every byte returned to the source from which it came.
///
/// Two pools use different sources. One has physical handles, of `vmm` if that is found, else of `pages`;
/// the driver's counters of `cuMemCreate` and `cuMemRelease` show them. The other uses a pair of functions
/// that records its ranges.
public abstract class ScopedPools {
    private static final int THREADS = 4;
    private static final int ROUNDS = 200;
    private static final long LARGEST = 3L << 20;

    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final Allocator outside;
    private final CountingRanges functions;
    private final MemoryPool pages;
    private final MemoryPool ranges;

    /// Failed calls of `cuMemCreate`, with which `vmm` finds out the kinds of handles that it may create.
    private long refusedHandles;

    private final List<Long> streams = new ArrayList<>();

    /// Runs the tests on a driver, and closes it after the test.
    protected ScopedPools(CudaDriver driver) {
        this.driver = driver;
        memory = DeviceMemory.builder(driver).catalog(DiscoveredCatalog.find()).open();
        outside = memory.open("direct");
        functions = new CountingRanges(driver);
        pages = memory.pools().open(ofHandles());
        ranges = MemoryPool.builder(memory)
                .functions(functions, functions)
                .tag("ranges")
                .open();
    }

    private String ofHandles() {
        return memory.currents().catalog().entries().stream()
                .filter(entry ->
                        entry.kind() == Catalog.Kind.SOURCE && entry.problem().isEmpty())
                .map(Catalog.Entry::name)
                .filter("vmm"::equals)
                .findFirst()
                .orElse("pages");
    }

    @BeforeEach
    void openStreams() {
        memory.currents().set(outside);
        for (int i = 0; i < 2 * THREADS; i++) {
            streams.add(driver.streams().create(0));
        }
        long stream = streams.getFirst();
        memory.free(pages.allocate(1, 0, stream), stream);
        driver.streams().synchronize(0, stream);
        pages.trim(0, 0, TrimMode.WITHOUT_WAITING);
        refusedHandles = createdHandles() - driver.calls().of(DriverCall.MEM_RELEASE);
        assertThat(pages.reservedBytes(0)).hasValue(0);
        pages.resetPeaks(0);
        pages.resetTotals(0);
    }

    @AfterEach
    void everyByteIsBackWithItsSource() {
        streams.forEach(stream -> driver.streams().synchronize(0, stream));
        pages.close();
        ranges.close();
        memory.close();
        streams.forEach(stream -> driver.streams().destroy(0, stream));
        assertThat(functions.liveBytes()).isZero();
        assertThat(functions.returnedBytes()).isEqualTo(functions.madeBytes());
        assertThat(liveHandles()).isZero();
        assertThat(driver.calls().of(DriverCall.MEM_FREE))
                .isEqualTo(driver.calls().of(DriverCall.MEM_ALLOC));
        driver.close();
    }

    private long liveHandles() {
        return createdHandles() - driver.calls().of(DriverCall.MEM_RELEASE) - refusedHandles;
    }

    private long createdHandles() {
        return driver.calls().of(DriverCall.MEM_CREATE);
    }

    @Test
    void nestedScopesOnThreadsAndStreamsKeepTheirContents() throws Exception {
        try (Patterns patterns = new Patterns(driver, 0);
                ExecutorService executor = Executors.newFixedThreadPool(THREADS)) {
            List<Future<?>> running = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                int mine = thread;
                running.add(executor.submit(() -> work(patterns, mine)));
            }
            for (Future<?> task : running) {
                task.get();
            }
            assertThat(patterns.mismatches()).isEmpty();
        }
        for (AllocatorStatistics counted : List.of(outside.statistics(0), pages.statistics(0), ranges.statistics(0))) {
            assertThat(counted.allocations()).isEqualTo((long) THREADS * ROUNDS);
            assertThat(counted.liveBlocks()).isZero();
        }
        assertThat(functions.liveBytes())
                .isEqualTo(ranges.reservedBytes(0).orElseThrow())
                .isPositive();
    }

    @Test
    void closedPoolsGiveBackIdleMemoryAtOnceAndTheRestLater() throws Exception {
        try (Patterns patterns = new Patterns(driver, 0)) {
            for (MemoryPool pool : List.of(pages, ranges)) {
                List<long[]> live = new ArrayList<>();
                try (Scope _ = pool.enter()) {
                    for (int i = 0; i < THREADS; i++) {
                        live.add(block(patterns, 7 + i, 3L << 20, streams.get(i)));
                        end(patterns, block(patterns, 70 + i, 24L << 20, streams.get(i)));
                    }
                }
                driver.devices().synchronize(0);
                long held = pool.reservedBytes(0).orElseThrow();
                pool.close();
                assertThat(pool.liveBlockCount()).isEqualTo(THREADS);
                assertThat(pool.isDrained()).isFalse();
                assertThat(pool.reservedBytes(0).orElseThrow())
                        .as("live blocks, in whole segments or pages")
                        .isBetween(THREADS * (3L << 20), held - 1);
                endOnThreads(patterns, live);
                assertThat(pool.isDrained()).isTrue();
                assertThat(pool.reservedBytes(0)).hasValue(0);
            }
            assertThat(liveHandles()).isZero();
            assertThat(functions.liveBytes()).isZero();
            assertThat(patterns.mismatches()).isEmpty();
        }
    }

    /// Verifies and frees the blocks, each on a thread of its own.
    private void endOnThreads(Patterns patterns, List<long[]> blocks) throws Exception {
        try (ExecutorService executor = Executors.newFixedThreadPool(THREADS)) {
            List<Future<?>> running = new ArrayList<>();
            blocks.forEach(block -> running.add(executor.submit(() -> end(patterns, block))));
            for (Future<?> task : running) {
                task.get();
            }
        }
    }

    /// In each round, allocates a block outside, one in a scope, and one in a nested scope; writes them, and
    /// verifies them when it frees them.
    private void work(Patterns patterns, int thread) {
        long first = streams.get(2 * thread);
        long second = streams.get(2 * thread + 1);
        List<long[]> live = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            int seed = 1_000_000 * (thread + 1) + 10 * round;
            live.add(block(patterns, seed, first));
            try (Scope _ = pages.enter()) {
                live.add(block(patterns, seed + 1, first));
                try (Scope _ = ranges.enter(ScopeOptions.all().stream(0, second))) {
                    live.add(block(patterns, seed + 2, second));
                }
            }
            while (live.size() > 12) {
                end(patterns, live.remove(round % live.size()));
            }
        }
        live.forEach(block -> end(patterns, block));
    }

    private long[] block(Patterns patterns, int seed, long stream) {
        return block(patterns, seed, 1 + Math.floorMod(seed * 7919L * 104_729L, LARGEST), stream);
    }

    private long[] block(Patterns patterns, int seed, long byteSize, long stream) {
        long address = memory.allocate(byteSize, 0, stream);
        patterns.write(address, byteSize, seed, stream);
        return new long[] {address, byteSize, seed, stream};
    }

    private void end(Patterns patterns, long[] block) {
        patterns.verify(block[0], block[1], (int) block[2], block[3]);
        memory.free(block[0], block[3]);
    }

    @Test
    void aScopeIsCarriedToAWorkerAndItsBlocksComeHome() throws Exception {
        try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor();
                Scope _ = pages.enter()) {
            ScopeCarrier here = ScopeCarrier.capture(memory);
            long stream = streams.getFirst();
            long block = executor.submit(here.wrap(() -> memory.allocate(1 << 20, 0, stream)))
                    .get();
            assertThat(pages.statistics(0).liveBlocks()).isEqualTo(1);
            memory.free(block, stream);
            assertThat(pages.statistics(0).liveBlocks()).isZero();
        }
    }

    @Test
    void swapsUnderTrafficLoseNothing() throws Exception {
        try (Patterns patterns = new Patterns(driver, 0);
                ExecutorService executor = Executors.newFixedThreadPool(THREADS)) {
            memory.setCurrent("caching");
            List<Future<?>> running = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                long stream = streams.get(thread);
                int mine = thread;
                running.add(executor.submit(() -> {
                    List<long[]> live = new ArrayList<>();
                    for (int round = 0; round < ROUNDS; round++) {
                        live.add(block(patterns, 1_000_000 * (mine + 1) + round, stream));
                        if (live.size() > 8) {
                            end(patterns, live.remove(round % live.size()));
                        }
                    }
                    live.forEach(block -> end(patterns, block));
                }));
            }
            List<Allocator> former = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                former.add(memory.current(0));
                memory.setCurrent(i % 2 == 0 ? "async" : "caching");
            }
            for (Future<?> task : running) {
                task.get();
            }
            assertThat(patterns.mismatches()).isEmpty();
            assertThat(former).allMatch(Allocator::isDrained);
        }
    }
}
