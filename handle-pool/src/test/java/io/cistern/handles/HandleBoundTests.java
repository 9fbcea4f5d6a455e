package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.handles.CheckedLibrary.Handle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// How many handles virtual threads make, however many of them there are: as many as may have leases at once. Each
/// of them gets its turn, and none waits for itself or in a circle.
@Timeout(120)
final class HandleBoundTests {
    private static final int THREADS = 5_000;
    private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();

    private final HandlePoolFixture fixture = new HandlePoolFixture();
    private final long stream = fixture.stream;
    private final long onSecondDevice = fixture.gpu.streams().create(1);

    @AfterEach
    void nothingIsLeft() {
        fixture.close();
    }

    private static void onVirtualThreads(int count, IntConsumer work) {
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int number = i;
            threads.add(Thread.ofVirtual()
                    .uncaughtExceptionHandler((_, failure) -> failures.add(failure))
                    .start(() -> work.accept(number)));
        }
        threads.forEach(HandleBoundTests::join);
        assertThat(failures).isEmpty();
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new AssertionError("a thread does not end", e);
        }
    }

    private static void use(HandleLease<Handle> lease, long stream) {
        lease.handle(stream).use(stream);
        Thread.yield();
        lease.handle(stream).use(stream);
    }

    @ParameterizedTest
    @EnumSource(HandleStrategy.class)
    void threadsThatYieldMakeAsManyHandlesAsThereAreProcessors(HandleStrategy strategy) {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withStrategy(strategy));
        onVirtualThreads(THREADS, _ -> {
            try (var lease = pool.lease(0)) {
                use(lease, stream);
            }
        });
        assertThat(pool.statistics(0).leases()).isEqualTo(THREADS);
        assertThat(pool.statistics(0).peak()).isBetween(1L, (long) PROCESSORS);
    }

    @ParameterizedTest
    @EnumSource(HandleStrategy.class)
    void leasesOfOneThreadNeedOnePlaceOnAllDevices(HandleStrategy strategy) {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withStrategy(strategy).withMaxVirtualThreads(2));
        onVirtualThreads(THREADS, thread -> {
            int first = thread % 2;
            try (var outer = pool.lease(first);
                    var again = pool.lease(first);
                    var inner = pool.lease(1 - first)) {
                use(outer, first == 0 ? stream : onSecondDevice);
                use(inner, first == 0 ? onSecondDevice : stream);
                use(again, first == 0 ? stream : onSecondDevice);
            }
        });
        assertThat(pool.statistics(0).peak()).isBetween(1L, 2L);
        assertThat(pool.statistics(1).peak()).isBetween(1L, 2L);
    }

    @ParameterizedTest
    @EnumSource(HandleStrategy.class)
    void leasesOfTwoPoolsInEitherOrderDoNotBlockEachOther(HandleStrategy strategy) {
        var options = HandlePoolOptions.DEFAULT.withStrategy(strategy).withMaxVirtualThreads(2);
        var pools = List.of(fixture.open(options), fixture.open(options));
        onVirtualThreads(THREADS, thread -> {
            try (var outer = pools.get(thread % 2).lease(0);
                    var inner = pools.get(1 - thread % 2).lease(0)) {
                use(outer, stream);
                use(inner, stream);
            }
        });
        pools.forEach(pool -> assertThat(pool.statistics(0).peak()).isBetween(1L, 4L));
    }

    @Test
    void aPlaceIsKeptUntilTheLastLeaseOfTheThreadEnds() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withMaxVirtualThreads(1));
        onVirtualThreads(100, _ -> {
            var first = pool.lease(0);
            try (var second = pool.lease(1)) {
                first.close();
                use(second, onSecondDevice);
            }
        });
        assertThat(pool.statistics(1).peak()).isEqualTo(1);
    }

    @Test
    void leasesThatNobodyClosedGiveTheirPlacesBack() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withMaxVirtualThreads(2));
        onVirtualThreads(20, _ -> {
            pool.lease(0);
            use(pool.lease(1), onSecondDevice);
        });
        assertThat(pool.statistics(1).peak()).isBetween(1L, 2L);
    }

    @Test
    void aThreadWaitsLongerThanMaxWaitWhileOthersComeToTheirTurn() {
        var pool =
                fixture.open(HandlePoolOptions.DEFAULT.withMaxVirtualThreads(1).withMaxWait(Duration.ofSeconds(1)));
        onVirtualThreads(8, _ -> {
            try (var lease = pool.lease(0)) {
                lease.handle(stream).use(stream);
                sleep();
            }
        });
        assertThat(pool.statistics(0).leases()).isEqualTo(8);
    }

    private static void sleep() {
        try {
            Thread.sleep(200);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aLeaseIsRefusedIfNoneEndsAndTheNextOneIsNot() throws InterruptedException {
        var pool = fixture.open(HandlePoolFixture.soon().withMaxVirtualThreads(1));
        var opened = new CountDownLatch(1);
        var ends = new CountDownLatch(1);
        Thread leasing = Thread.ofVirtual().start(() -> {
            try (var _ = pool.lease(0)) {
                opened.countDown();
                HandlePoolFixture.await(() -> ends.getCount() == 0);
            }
        });
        opened.await();
        assertThatThrownBy(() -> HandlePoolFixture.onVirtualThread(() -> pool.lease(0)))
                .isInstanceOf(HandleException.class)
                .hasMessageContaining("1 virtual threads")
                .hasMessageContaining("maxVirtualThreads");
        assertThat(pool.handle(0, stream)).as("of a platform thread").isNotNull();
        ends.countDown();
        leasing.join();
        onVirtualThreads(2, _ -> {
            try (var lease = pool.lease(0)) {
                use(lease, stream);
            }
        });
        assertThat(pool.statistics(0).waits()).isPositive();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aPoolThatClosesTurnsWaitingThreadsAway(boolean virtual) throws InterruptedException {
        var options = HandlePoolOptions.DEFAULT;
        var pool = fixture.open(virtual ? options.withMaxVirtualThreads(1) : options.withMaxHandles(1));
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        var ends = new CountDownLatch(1);
        var opened = new CountDownLatch(1);
        Thread leasing = threads(virtual).start(() -> {
            try (var _ = pool.lease(0)) {
                opened.countDown();
                HandlePoolFixture.await(() -> ends.getCount() == 0);
            }
        });
        opened.await();
        Thread waiting = threads(virtual)
                .uncaughtExceptionHandler((_, failure) -> failures.add(failure))
                .start(() -> pool.lease(0));
        HandlePoolFixture.await(() -> pool.statistics(0).waits() == 1);
        Thread closing = Thread.ofPlatform().start(pool::close);
        waiting.join();
        assertThat(failures).singleElement().isInstanceOf(IllegalStateException.class);
        ends.countDown();
        leasing.join();
        closing.join();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aPoolThatCouldNotCloseHasAsManyPlacesAsBefore(boolean virtual) throws InterruptedException {
        var options = HandlePoolFixture.soon().withMaxWait(Duration.ofMillis(500));
        var pool = fixture.open(virtual ? options.withMaxVirtualThreads(1) : options.withMaxHandles(1));
        Thread.Builder threads = threads(virtual);
        for (int round = 0; round < 3; round++) {
            var opened = new CountDownLatch(1);
            var ends = new CountDownLatch(1);
            Queue<String> refusals = new ConcurrentLinkedQueue<>();
            Thread leasing = threads.start(() -> {
                try (var _ = pool.lease(0)) {
                    opened.countDown();
                    HandlePoolFixture.await(() -> ends.getCount() == 0);
                }
            });
            opened.await();
            long waits = pool.statistics(0).waits();
            Thread waiting = threads.start(() -> tryLease(pool, refusals));
            HandlePoolFixture.await(() -> pool.statistics(0).waits() > waits);
            assertThatThrownBy(pool::close).isInstanceOf(IllegalStateException.class);
            waiting.join();
            Thread refused = threads.start(() -> tryLease(pool, refusals));
            refused.join();
            assertThat(refusals).as("while the first has the only place").hasSize(2);
            ends.countDown();
            leasing.join();
            refusals.clear();
            threads.start(() -> tryLease(pool, refusals)).join();
            assertThat(refusals).isEmpty();
        }
    }

    private static Thread.Builder threads(boolean virtual) {
        return virtual ? Thread.ofVirtual() : Thread.ofPlatform();
    }

    private void tryLease(HandlePool<Handle> pool, Queue<String> refusals) {
        try (var lease = pool.lease(0)) {
            use(lease, stream);
        } catch (HandleException | IllegalStateException refusal) {
            refusals.add(refusal.getMessage());
        }
    }
}
