package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Which workers are in the scope of the code that starts them: the rows of the table in `docs/scopes.md`. That of
/// structured tasks is in [StructuredTaskTests], Reactor's in the module `integrations/context-propagation`.
class ScopeCarryingTests {
    /// The pool's addresses begin here, all others are below.
    private static final long POOL = 1L << 40;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(), List.of())).open();
    private final Allocator pool = memory.open(OpenOptions.made("pool", new Addresses(POOL)));
    private final ExecutorService executor = Executors.newFixedThreadPool(2);

    ScopeCarryingTests() {
        memory.currents().set(memory.open(OpenOptions.made("current", new Addresses(1 << 20))));
    }

    @AfterEach
    void close() {
        executor.close();
        memory.close();
        gpu.close();
    }

    /// Whether the calling thread is in the pool's scope.
    private boolean isInside() {
        long address = memory.allocate(100, 0, 0);
        memory.free(address, 0);
        return address >= POOL;
    }

    private ScopeCarrier carrier() {
        assertThat(isInside()).isTrue();
        return ScopeCarrier.capture(memory);
    }

    @Test
    void tasksOfAnExecutorAreCarriedOnPurpose() throws Exception {
        Callable<Boolean> task = this::isInside;
        try (Scope _ = pool.enter()) {
            assertThat(executor.submit(task).get()).isFalse();
            assertThat(executor.submit(carrier().wrap(task)).get()).isTrue();
            assertThat(carrier().executorService(executor).submit(task).get()).isTrue();
        }
        boolean byItself =
                pool.call(ScopeOptions.all(), () -> executor.submit(task).get());
        assertThat(byItself).isFalse();
    }

    @Test
    void newThreadsOfBothKindsAreCarriedOnPurpose() throws Exception {
        for (ThreadFactory threads :
                List.of(Thread.ofPlatform().factory(), Thread.ofVirtual().factory())) {
            try (Scope _ = pool.enter()) {
                assertThat(inNewThread(threads)).isFalse();
                assertThat(inNewThread(carrier().threadFactory(threads))).isTrue();
            }
            boolean byItself = pool.call(ScopeOptions.all(), () -> inNewThread(threads));
            assertThat(byItself).isFalse();
        }
    }

    private boolean inNewThread(ThreadFactory threads) throws InterruptedException {
        AtomicReference<Boolean> inside = new AtomicReference<>();
        Thread thread = threads.newThread(() -> inside.set(isInside()));
        thread.start();
        thread.join();
        return inside.get();
    }

    /// The thread that starts the stream does a part of it.
    @Test
    void ofAParallelStreamOnlyTheCallersPartIsInsideByItself() {
        pool.run(ScopeOptions.all(), this::onlyTheCallersPartIsInside);
        try (Scope _ = pool.enter()) {
            onlyTheCallersPartIsInside();
            ScopeCarrier here = carrier();
            AtomicInteger inside = new AtomicInteger();
            IntStream.range(0, 1000).parallel().forEach(_ -> here.run(() -> inside.addAndGet(isInside() ? 1 : 0)));
            assertThat(inside).hasValue(1000);
        }
    }

    private void onlyTheCallersPartIsInside() {
        Thread caller = Thread.currentThread();
        assertThat(IntStream.range(0, 1000)
                        .parallel()
                        .allMatch(_ -> isInside() == Thread.currentThread().equals(caller)))
                .isTrue();
    }

    @Test
    void stagesOfACompletableFutureAreCarriedByTheirExecutor() {
        boolean byItself = pool.call(
                ScopeOptions.all(),
                () -> CompletableFuture.supplyAsync(this::isInside).join());
        assertThat(byItself).isFalse();
        try (Scope _ = pool.enter()) {
            assertThat(CompletableFuture.supplyAsync(this::isInside).join()).isFalse();
            assertThat(CompletableFuture.supplyAsync(this::isInside, executor).join())
                    .isFalse();
            CompletableFuture<Boolean> carried =
                    CompletableFuture.supplyAsync(this::isInside, carrier().executor(executor));
            assertThat(carried.join()).isTrue();
            assertThat(carried.thenApplyAsync(_ -> isInside(), executor).join()).isFalse();
            assertThat(carried.thenApplyAsync(_ -> isInside(), carrier().executor(executor))
                            .join())
                    .isTrue();
        }
    }

    private static final class Addresses implements DeviceAllocator {
        private final AtomicLong next;

        Addresses(long first) {
            next = new AtomicLong(first);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return next.getAndAdd(1024);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
