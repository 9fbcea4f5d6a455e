package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.UnusableStreamException;
import io.cistern.handles.CheckedLibrary.Handle;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Handles for a region: of virtual threads, and of all where a pool closes.
@Timeout(60)
final class HandleLeaseTests {
    private static final int VIRTUAL_THREADS = 10_000;

    private final HandlePoolFixture fixture = new HandlePoolFixture();
    private final CheckedLibrary library = fixture.library;
    private final long stream = fixture.stream;

    @AfterEach
    void nothingIsLeft() {
        fixture.close();
    }

    @Test
    void aVirtualThreadWithoutALeaseIsToldToOpenOne() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        assertThatThrownBy(() -> HandlePoolFixture.onVirtualThread(() -> pool.handle(0, stream)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("pool.lease(0)");
        assertThat(library.created).hasValue(0);
    }

    @Test
    void aLeaseGivesTheSameHandleUntilItEnds() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        HandlePoolFixture.onVirtualThread(() -> {
            try (var outer = pool.lease(0)) {
                Handle mine = outer.handle(stream);
                try (var inner = pool.lease(0)) {
                    assertThat(inner.handle(stream)).isSameAs(mine);
                }
                assertThat(pool.handle(0, stream)).isSameAs(mine);
            }
            assertThatThrownBy(() -> pool.handle(0, stream)).isInstanceOf(IllegalStateException.class);
            return null;
        });
        assertThat(pool.statistics(0).idle()).isEqualTo(1);
        assertThat(pool.statistics(0).leases()).isEqualTo(2);
    }

    @Test
    void aLeaseOfAPlatformThreadIsOfItsOwnHandle() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        Handle mine = pool.handle(0, stream);
        try (var lease = pool.lease(0)) {
            assertThat(lease.handle(stream)).isSameAs(mine);
        }
        assertThat(pool.handle(0, stream)).isSameAs(mine);
    }

    @Test
    void manyVirtualThreadsShareFewHandles() throws InterruptedException {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withMaxHandles(8));
        var done = new CountDownLatch(VIRTUAL_THREADS);
        try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < VIRTUAL_THREADS; i++) {
                long mine = i % 2 == 0 ? stream : fixture.other;
                var _ = threads.submit(() -> {
                    try (var lease = pool.lease(0)) {
                        lease.handle(mine).use(mine);
                        Thread.yield();
                        lease.handle(mine).use(mine);
                    }
                    done.countDown();
                });
            }
            done.await();
        }
        assertThat(library.created).hasValueBetween(1, 8);
        assertThat(pool.statistics(0).idle()).isEqualTo(library.created.get());
        assertThat(pool.statistics(0).leases()).isEqualTo(VIRTUAL_THREADS);
    }

    @Test
    void aLeaseThatNobodyClosedEndsWithItsThread() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        HandlePoolFixture.onVirtualThread(() -> pool.lease(0).handle(stream));
        HandlePoolFixture.await(() -> pool.statistics(0).abandonedLeases() == 1);
        assertThat(pool.statistics(0).idle()).isEqualTo(1);
    }

    @Test
    void aHandlePerThreadIsDestroyedThoughItsLeaseIsOpen() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withStrategy(HandleStrategy.PER_THREAD));
        HandlePoolFixture.onNewThread(() -> pool.lease(0).handle(stream));
        HandlePoolFixture.await(() -> pool.statistics(0).abandonedLeases() == 1);
        assertThat(pool.statistics(0).alive()).isZero();
    }

    @Test
    void theDefaultStreamOfTheThreadIsRefusedOnAVirtualThread() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        assertThatThrownBy(() -> HandlePoolFixture.onVirtualThread(() -> {
                    try (var lease = pool.lease(0)) {
                        return lease.handle(2);
                    }
                }))
                .isInstanceOf(UnusableStreamException.class);
    }

    @Test
    @SuppressWarnings("try") // another thread tries to close the lease
    void anotherThreadCannotUseALease() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        try (var lease = pool.lease(0)) {
            assertThatThrownBy(() -> HandlePoolFixture.onNewThread(() -> lease.handle(stream)))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("belongs to the thread");
            AutoCloseable same = lease;
            assertThatThrownBy(() -> HandlePoolFixture.onNewThread(() -> {
                        same.close();
                        return null;
                    }))
                    .isInstanceOf(IllegalStateException.class);
            assertThat(pool.statistics(0).idle()).isZero();
        }
    }

    @Test
    void aPoolDoesNotCloseWhileLeasesAreOpen() {
        var pool = fixture.open(HandlePoolFixture.soon());
        try (var lease = pool.lease(0)) {
            lease.handle(stream);
            assertThatThrownBy(() -> HandlePoolFixture.onNewThread(() -> {
                        pool.close();
                        return null;
                    }))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining(Thread.currentThread().getName());
            lease.handle(stream).use(stream);
        }
        pool.close();
        assertThat(library.alive()).isZero();
    }

    @Test
    void leasesThatNobodyClosedKeepNoPoolOpen() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withCloseWait(Duration.ZERO));
        HandlePoolFixture.onNewThread(() -> pool.lease(0).handle(stream));
        pool.close();
        assertThat(library.alive()).isZero();
        assertThat(pool.statistics(0).abandonedLeases()).isEqualTo(1);
    }

    /// A thread that waits looks for them at once, before the pool's own thread does.
    @Test
    void aThreadNeedNotWaitForLeasesThatNobodyClosed() {
        var pool =
                fixture.open(HandlePoolOptions.DEFAULT.withMaxVirtualThreads(1).withMaxWait(Duration.ofMillis(5)));
        for (int i = 0; i < 10; i++) {
            HandlePoolFixture.onVirtualThread(() -> pool.lease(0).handle(stream));
        }
        assertThat(library.created).hasValue(1);
    }

    @Test
    void theDeviceMemoryReportsAPoolThatDoesNotClose() {
        var pool = fixture.open(HandlePoolFixture.soon());
        try (var lease = pool.lease(0)) {
            assertThatThrownBy(fixture.memory::close)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("leases open");
            lease.handle(stream).use(stream);
        }
        pool.close();
        assertThat(library.alive()).isZero();
    }

    @Test
    void closingWaitsForLeases() throws InterruptedException {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream).use(stream);
        var opened = new CountDownLatch(1);
        var goesOn = new CountDownLatch(1);
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        Thread leasing = Thread.ofVirtual()
                .uncaughtExceptionHandler((_, failure) -> failures.add(failure))
                .start(() -> {
                    try (var lease = pool.lease(0)) {
                        Handle mine = lease.handle(stream);
                        opened.countDown();
                        HandlePoolFixture.await(() -> goesOn.getCount() == 0);
                        mine.use(stream);
                        lease.handle(fixture.other).use(fixture.other); // while the pool closes
                    }
                });
        opened.await();
        Thread closing = Thread.ofPlatform().start(pool::close);
        HandlePoolFixture.await(() -> isClosing(pool));
        assertThatThrownBy(() -> pool.handle(0, fixture.other))
                .as("on a thread with a handle")
                .hasMessageContaining("closed");
        HandlePoolFixture.onNewThread(() -> {
            assertThatThrownBy(() -> pool.handle(0, stream)).hasMessageContaining("closed");
            return null;
        });
        goesOn.countDown();
        closing.join();
        leasing.join();
        assertThat(failures).isEmpty();
        assertThat(library.alive()).isZero();
    }

    private boolean isClosing(HandlePool<Handle> pool) {
        try (var _ = pool.lease(1)) {
            return false;
        } catch (IllegalStateException closing) {
            return true;
        }
    }
}
