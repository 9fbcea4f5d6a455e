package io.cistern.context;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.Scope;
import io.cistern.ScopeCarrier;
import io.cistern.ScopeOptions;
import io.micrometer.context.ContextRegistry;
import io.micrometer.context.ContextSnapshot;
import io.micrometer.context.ContextSnapshotFactory;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

class ScopeAccessorTests {
    private final DeviceMemory memory = DeviceMemory.system();
    private final Allocator current = memory.setCurrent("direct");
    private final Allocator pool = memory.open("direct");
    private final Allocator other = memory.open("direct");
    private final ExecutorService platform = Executors.newSingleThreadExecutor();
    private final ExecutorService virtual = Executors.newVirtualThreadPerTaskExecutor();

    @BeforeEach
    void nobodyIsInAScope() {
        assertThat(serving()).isSameAs(current);
    }

    @AfterEach
    void close() {
        assertThat(serving()).isSameAs(current);
        platform.close();
        virtual.close();
        List.of(pool, other).forEach(Allocator::close);
    }

    /// Which allocator serves the calling thread now.
    private Allocator serving() {
        long inPool = pool.statistics(0).allocations();
        long inOther = other.statistics(0).allocations();
        memory.free(memory.allocate(100, 0, 0), 0);
        return pool.statistics(0).allocations() > inPool
                ? pool
                : other.statistics(0).allocations() > inOther ? other : current;
    }

    @Test
    void aSnapshotTakesTheScopesToOtherThreads() throws Exception {
        ContextSnapshot snapshot;
        try (Scope _ = other.enter();
                Scope _ = pool.enter()) {
            snapshot = ContextSnapshotFactory.builder().build().captureAll();
        }
        Callable<Allocator> task = this::serving;
        for (ExecutorService executor : List.of(platform, virtual)) {
            assertThat(executor.submit(snapshot.wrap(task)).get()).isSameAs(pool);
            assertThat(executor.submit(task).get()).isSameAs(current);
        }
    }

    @Test
    void afterASnapshotTheThreadIsWhereItWas() {
        ContextSnapshot snapshot;
        try (Scope _ = pool.enter()) {
            snapshot = ContextSnapshotFactory.builder().build().captureAll();
        }
        try (Scope _ = other.enter()) {
            try (ContextSnapshot.Scope _ = snapshot.setThreadLocals()) {
                assertThat(serving()).isSameAs(pool);
            }
            assertThat(serving()).isSameAs(other);
        }
    }

    @Test
    void anEmptySnapshotEndsScopesWhereMissingValuesAreCleared() {
        ContextSnapshot snapshot =
                ContextSnapshotFactory.builder().clearMissing(true).build().captureAll();
        try (Scope _ = pool.enter()) {
            try (ContextSnapshot.Scope _ = snapshot.setThreadLocals()) {
                assertThat(serving()).isSameAs(current);
            }
            assertThat(serving()).isSameAs(pool);
        }
    }

    @Test
    void reactorByItselfCarriesNothing() {
        Mono<Allocator> elsewhere = Mono.fromCallable(this::serving);
        try (Scope _ = pool.enter()) {
            assertThat(elsewhere.subscribeOn(Schedulers.boundedElastic()).block())
                    .isSameAs(current);
            Scheduler carrying =
                    Schedulers.fromExecutorService(ScopeCarrier.capture().executorService(platform));
            assertThat(elsewhere.subscribeOn(carrying).block()).isSameAs(pool);
        }
        pool.run(
                ScopeOptions.all(),
                () -> assertThat(elsewhere
                                .subscribeOn(Schedulers.boundedElastic())
                                .block())
                        .isSameAs(current));
    }

    @Test
    void reactorCarriesTheScopesToItsSchedulers() {
        Hooks.enableAutomaticContextPropagation();
        try (Scope _ = pool.enter()) {
            assertThat(Mono.fromCallable(this::serving)
                            .subscribeOn(Schedulers.boundedElastic())
                            .block())
                    .isSameAs(pool);
            assertThat(Flux.range(0, 20)
                            .publishOn(Schedulers.parallel())
                            .map(_ -> serving())
                            .distinct()
                            .collectList()
                            .block())
                    .containsExactly(pool);
            other.run(
                    ScopeOptions.all(),
                    () -> assertThat(Mono.fromCallable(this::serving)
                                    .subscribeOn(Schedulers.boundedElastic())
                                    .block())
                            .isSameAs(other));
        } finally {
            Hooks.disableAutomaticContextPropagation();
        }
    }

    @Test
    void otherDeviceMemoryHasAnAccessorOfItsOwn() {
        try (DeviceMemory mine = DeviceMemory.builder(memory.driver())
                .catalog(memory.currents().catalog())
                .open()) {
            Allocator own = mine.open("direct");
            ContextRegistry registry = new ContextRegistry();
            registry.registerThreadLocalAccessor(new ScopeAccessor("mine", mine));
            ContextSnapshot snapshot;
            try (Scope _ = own.enter()) {
                snapshot = ContextSnapshotFactory.builder()
                        .contextRegistry(registry)
                        .build()
                        .captureAll();
            }
            try (ContextSnapshot.Scope _ = snapshot.setThreadLocals()) {
                mine.free(mine.allocate(100, 0, 0), 0);
            }
            assertThat(own.statistics(0).allocations()).isEqualTo(1);
        }
    }
}
