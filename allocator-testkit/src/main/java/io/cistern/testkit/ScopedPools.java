package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.Scope;
import io.cistern.ScopeCarrier;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCall;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Scopes and swaps over real memory: nested regions on several threads and streams, contents checked, and every byte
/// back with the source it came from.
///
/// Two allocators stand for two pools, one over physical handles and one over plain ranges, so that the driver's own
/// counters tell which source gave and got what.
public abstract class ScopedPools {
    private static final int THREADS = 4;
    private static final int ROUNDS = 200;
    private static final long LARGEST = 3L << 20;

    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final Allocator outside;
    private final Allocator pages;
    private final Allocator ranges;
    private final List<Long> streams = new ArrayList<>();

    /// On a driver, which is closed in the end.
    protected ScopedPools(CudaDriver driver) {
        this.driver = driver;
        memory = DeviceMemory.open(driver, DiscoveredCatalog.find());
        outside = memory.open("direct");
        pages = memory.open("caching:source=pages");
        ranges = memory.open("caching:source=linear");
    }

    @BeforeEach
    void openStreams() {
        memory.setCurrent(outside);
        for (int i = 0; i < 2 * THREADS; i++) {
            streams.add(driver.streams().create(0));
        }
    }

    @AfterEach
    void everyByteIsBackWithItsSource() {
        streams.forEach(stream -> driver.streams().synchronize(0, stream));
        memory.close();
        streams.forEach(stream -> driver.streams().destroy(0, stream));
        assertThat(driver.calls().of(DriverCall.MEM_RELEASE))
                .isEqualTo(driver.calls().of(DriverCall.MEM_CREATE));
        assertThat(driver.calls().of(DriverCall.MEM_FREE))
                .isEqualTo(driver.calls().of(DriverCall.MEM_ALLOC));
        driver.close();
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
        for (Allocator allocator : List.of(outside, pages, ranges)) {
            assertThat(allocator.statistics(0).allocations()).isEqualTo((long) THREADS * ROUNDS);
            assertThat(allocator.statistics(0).liveBlocks()).isZero();
        }
    }

    /// Each round: one block outside, one in a scope, one in a scope within it; written, and verified when freed.
    private void work(Patterns patterns, int thread) {
        long first = streams.get(2 * thread);
        long second = streams.get(2 * thread + 1);
        List<long[]> live = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            int seed = 1_000_000 * (thread + 1) + 10 * round;
            live.add(block(patterns, seed, first));
            try (Scope _ = pages.enter()) {
                live.add(block(patterns, seed + 1, first));
                try (Scope _ = ranges.enter(0, second)) {
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
        long byteSize = 1 + Math.floorMod(seed * 7919L * 104_729L, LARGEST);
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
            memory.swap("caching");
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
                former.add(memory.current());
                memory.swap(i % 2 == 0 ? "async" : "caching");
            }
            for (Future<?> task : running) {
                task.get();
            }
            assertThat(patterns.mismatches()).isEmpty();
            assertThat(former).allMatch(Allocator::isDrained);
        }
    }
}
