package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ScopeTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(
                    List.of(new DirectProvider(), new ArrayAllocatorProvider("array")),
                    List.of(new DriverSource.Linear())))
            .open();
    private final Allocator current = memory.setCurrent("direct");
    private final Allocator pool = memory.open("direct");
    private final Allocator other = memory.open("direct");
    private final List<Long> blocks = new ArrayList<>();

    @AfterEach
    void everythingGoesBackToItsAllocator() {
        blocks.forEach(block -> memory.free(block, 0));
        for (Allocator allocator : List.of(current, pool, other)) {
            assertThat(allocator.statistics(0).liveBlocks()).isZero();
            assertThat(allocator.statistics(1).liveBlocks()).isZero();
        }
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
    }

    /// Which allocator serves the calling thread now.
    private Allocator serving(int device, long stream) {
        long[] before = {allocations(current, device), allocations(pool, device), allocations(other, device)};
        long block = memory.allocate(1000, device, stream);
        synchronized (blocks) {
            blocks.add(block);
        }
        return allocations(pool, device) > before[1] ? pool : allocations(other, device) > before[2] ? other : current;
    }

    private Allocator serving() {
        return serving(0, 0);
    }

    private static long allocations(Allocator allocator, int device) {
        return allocator.statistics(device).allocations();
    }

    @Test
    void insideAScopeItsAllocatorServesAndOutsideTheCurrentOne() {
        try (Scope scope = pool.enter()) {
            assertThat(scope.allocator()).isSameAs(pool);
            assertThat(serving()).isSameAs(pool);
        }
        assertThat(serving()).isSameAs(current);
    }

    @Test
    void theInnermostScopeServes() {
        try (Scope _ = pool.enter()) {
            try (Scope _ = other.enter()) {
                assertThat(serving()).isSameAs(other);
            }
            assertThat(serving()).isSameAs(pool);
        }
    }

    @Test
    void aScopeMayBeForOneDevice() {
        try (Scope _ = pool.enter(ScopeOptions.all().device(1))) {
            assertThat(serving(0, 0)).isSameAs(current);
            assertThat(serving(1, 0)).isSameAs(pool);
        }
    }

    @Test
    void aScopeMayBeForOneStreamAndTheOnesAroundItServeTheRest() {
        long first = gpu.streams().create(0);
        long second = gpu.streams().create(0);
        try (Scope _ = other.enter();
                Scope _ = pool.enter(ScopeOptions.all().stream(0, first))) {
            assertThat(serving(0, first)).isSameAs(pool);
            assertThat(serving(0, second)).isSameAs(other);
            assertThat(serving(1, first)).isSameAs(other);
            try (Scope _ = current.enter(ScopeOptions.all().device(0))) {
                assertThat(serving(0, first)).isSameAs(current);
            }
        }
    }

    @Test
    void aSwapInsideAScopeShowsOutsideIt() {
        try (Scope _ = pool.enter()) {
            memory.currents().set(other);
            assertThat(serving()).isSameAs(pool);
        }
        assertThat(serving()).isSameAs(other);
    }

    @Test
    void aScopeThatCarriedCodeLeftOpenClosesNoMore() {
        List<Scope> left = new ArrayList<>();
        ScopeCarrier.none(memory).run(() -> left.add(pool.enter()));
        assertThatIllegalStateException()
                .isThrownBy(() -> left.getFirst().close())
                .withMessageContaining("the scope of " + pool + " is not the innermost: the thread is in no scope now");
        assertThat(serving()).isSameAs(current);
    }

    @Test
    void scopesCloseInnermostFirst() {
        Scope outer = pool.enter();
        Scope inner = other.enter();
        assertThatIllegalStateException()
                .isThrownBy(outer::close)
                .withMessageContaining("not the innermost")
                .withMessageContaining("the scope of " + other);
        assertThat(serving()).isSameAs(other);
        inner.close();
        outer.close();
        assertThat(serving()).isSameAs(current);
    }

    @Test
    void closingAScopeTwiceDoesNothing() {
        Scope scope = pool.enter();
        scope.close();
        try (Scope _ = other.enter()) {
            scope.close();
            assertThat(serving()).isSameAs(other);
        }
        scope.close();
        assertThat(serving()).isSameAs(current);
    }

    @Test
    void aScopeIsClosedByTheThreadThatOpenedIt() throws Exception {
        try (Scope scope = pool.enter()) {
            Thread thread = Thread.ofPlatform()
                    .start(() -> assertThatExceptionOfType(WrongThreadException.class)
                            .isThrownBy(scope::close)
                            .withMessageContaining("opened by"));
            thread.join();
            assertThat(serving()).isSameAs(pool);
        }
    }

    @Test
    void aScopeEndsWhenItsBodyThrows() {
        assertThatIllegalStateException().isThrownBy(() -> {
            try (Scope _ = pool.enter()) {
                throw new IllegalStateException("body");
            }
        });
        assertThat(serving()).isSameAs(current);
    }

    @Test
    void aClosedAllocatorCanNotBeEnteredAndServesNobody() {
        try (Scope _ = pool.enter()) {
            pool.close();
            assertThatIllegalStateException()
                    .isThrownBy(() -> memory.allocate(1, 0, 0))
                    .withMessageContaining("is closed");
        }
        assertThatIllegalStateException().isThrownBy(() -> pool.enter());
    }

    @Test
    void codeRunsInAScope() {
        Allocator inScope = pool.call(ScopeOptions.all(), this::serving);
        assertThat(inScope).isSameAs(pool);
        assertThat(serving()).isSameAs(current);
    }

    @Test
    void theInnermostWinsWhicheverFormOpenedIt() {
        pool.run(ScopeOptions.all(), () -> {
            try (Scope _ = other.enter()) {
                assertThat(serving()).isSameAs(other);
                pool.run(ScopeOptions.all(), () -> assertThat(serving()).isSameAs(pool));
            }
            assertThat(serving()).isSameAs(pool);
        });
    }

    @Test
    void codeRunsInAScopeOfOneDeviceOrOneStream() {
        pool.run(ScopeOptions.all().device(1), () -> assertThat(serving()).isSameAs(current));
        pool.run(ScopeOptions.all().device(0), () -> assertThat(serving()).isSameAs(pool));
        pool.run(ScopeOptions.all().stream(0, 77), () -> {
            assertThat(serving()).isSameAs(current);
            memory.free(memory.allocate(1000, 0, 77), 77);
            assertThat(pool.statistics(0).allocations()).isEqualTo(2);
        });
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> pool.run(ScopeOptions.all().device(2), () -> {}));
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> ScopeOptions.all().device(-1));
    }

    @Test
    void codeRunsInAScopeWithALimitAndItsBlocksStayCharged() {
        MemoryLimit limit = MemoryLimit.of("task", 3000);
        long block = pool.call(ScopeOptions.all().limit(limit), () -> {
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> memory.allocate(3001, 0, 0))
                    .withMessageContaining("task: limit of 3000 bytes");
            return memory.allocate(2000, 0, 0);
        });
        assertThat(limit.usedBytes()).isEqualTo(2000);
        memory.free(block, 0);
        assertThat(limit.usedBytes()).isZero();
        ScopeOptions onStream = ScopeOptions.all().limit(limit).stream(0, 77);
        long charged = pool.call(onStream, () -> {
            memory.free(memory.allocate(5000, 0, 0), 0);
            return memory.allocate(1000, 0, 77);
        });
        assertThat(limit.usedBytes()).isEqualTo(1000);
        memory.free(charged, 77);
    }

    @Test
    void workOfAClosedAllocatorIsRefused() {
        pool.close();
        assertThatIllegalStateException().isThrownBy(() -> pool.run(ScopeOptions.all(), () -> {}));
    }

    @Test
    void otherThreadsAreNotInTheScope() throws Exception {
        try (Scope _ = pool.enter();
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            assertThat(executor.submit((Callable<Allocator>) this::serving).get())
                    .isSameAs(current);
        }
    }

    @Test
    void aCarrierTakesTheScopesToExecutorsOfEveryKind() throws Exception {
        try (ExecutorService platform = Executors.newFixedThreadPool(2);
                ExecutorService virtual = Executors.newVirtualThreadPerTaskExecutor()) {
            ScopeCarrier carrier;
            try (Scope _ = pool.enter()) {
                carrier = ScopeCarrier.capture(memory);
            }
            for (ExecutorService executor : List.of(platform, virtual)) {
                Callable<Allocator> task = this::serving;
                assertThat(executor.submit(carrier.wrap(task)).get()).isSameAs(pool);
                assertThat(carrier.executorService(executor).submit(task).get()).isSameAs(pool);
                assertThat(CompletableFuture.supplyAsync(this::serving, carrier.executor(executor))
                                .get())
                        .isSameAs(pool);
                for (Future<Allocator> done : carrier.executorService(executor).invokeAll(List.of(task, task))) {
                    assertThat(done.get()).isSameAs(pool);
                }
                assertThat(executor.submit(task).get()).isSameAs(current);
            }
            Thread thread = carrier.threadFactory(Thread.ofPlatform().factory())
                    .newThread(() -> assertThat(serving()).isSameAs(pool));
            thread.start();
            thread.join();
        }
    }

    @Test
    void parallelStreamsRunInACarriedScope() throws Exception {
        try (Scope _ = pool.enter();
                ForkJoinPool workers = new ForkJoinPool(3)) {
            ScopeCarrier carrier = ScopeCarrier.capture(memory);
            long before = allocations(pool, 0);
            workers.submit(() -> IntStream.range(0, 100).parallel().forEach(_ -> carrier.run(this::serving)))
                    .get();
            assertThat(allocations(pool, 0) - before).isEqualTo(100);
        }
    }

    @Test
    void virtualThreadsHaveScopesOfTheirOwn() throws Exception {
        int threads = 2000;
        List<Future<Boolean>> right = new ArrayList<>();
        try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < threads; i++) {
                Allocator mine = i % 2 == 0 ? pool : other;
                right.add(executor.submit(() -> {
                    boolean ok = true;
                    try (Scope _ = mine.enter()) {
                        Thread.yield();
                        long block = memory.allocate(100, 0, 0);
                        Thread.yield();
                        ok &= memory.scopes.current() != null;
                        memory.free(block, 0);
                    }
                    return ok && memory.scopes.current() == null;
                }));
            }
            for (Future<Boolean> each : right) {
                assertThat(each.get()).isTrue();
            }
        }
        assertThat(allocations(pool, 0)).isEqualTo(threads / 2);
        assertThat(allocations(other, 0)).isEqualTo(threads / 2);
    }

    @Test
    void aSwapUnderTrafficLosesNothing() throws Exception {
        int threads = 8;
        List<Future<?>> running = new ArrayList<>();
        AtomicBoolean stop = new AtomicBoolean();
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            for (int i = 0; i < threads; i++) {
                running.add(executor.submit(() -> {
                    long[] held = new long[16];
                    for (int step = 0; !stop.get(); step++) {
                        int at = step % held.length;
                        memory.free(held[at], 0);
                        held[at] = memory.allocate(512, 0, 0);
                        Thread.onSpinWait();
                    }
                    for (long block : held) {
                        memory.free(block, 0);
                    }
                }));
            }
            List<Allocator> former = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                former.add(memory.current(0));
                memory.setCurrent(i % 2 == 0 ? "array" : "direct");
                Thread.sleep(2);
            }
            stop.set(true);
            for (Future<?> task : running) {
                task.get();
            }
            assertThat(former).allMatch(Allocator::isDrained);
        }
        assertThat(memory.current(0).statistics(0).liveBlocks()).isZero();
    }

    @Test
    void aSwapHappensOnlyIfTheExpectedOneIsStillCurrent() {
        assertThat(memory.currents().compareAndSet(0, pool, other)).isFalse();
        assertThat(memory.current(0)).isSameAs(current);
        assertThat(memory.currents().compareAndSet(0, current, other)).isTrue();
        assertThat(memory.current(0)).isSameAs(other);
        assertThat(memory.current(1)).isSameAs(current);
        assertThat(serving(0, 0)).isSameAs(other);
        assertThat(serving(1, 0)).isSameAs(current);
    }
}
