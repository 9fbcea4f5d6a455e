package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.handles.CheckedLibrary.Handle;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Which handle a platform thread has, and what happens to it.
@Timeout(60)
final class HandlePoolTests {
    private final HandlePoolFixture fixture = new HandlePoolFixture();
    private final CheckedLibrary library = fixture.library;
    private final long stream = fixture.stream;
    private final long other = fixture.other;

    @AfterEach
    void nothingIsLeft() {
        fixture.close();
    }

    @Test
    void aThreadHasOneHandleForEachDevice() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        Handle first = pool.handle(0, stream);
        Handle second = pool.handle(1, 0);
        assertThat(pool.handle(0, stream)).isSameAs(first);
        assertThat(pool.handle(0, other)).isSameAs(first);
        assertThat(pool.handle(1, 0)).isSameAs(second).isNotSameAs(first);
        assertThat(first.device).isZero();
        assertThat(second.device).isEqualTo(1);
    }

    @Test
    void theStreamIsSetWhereItDiffersOnly() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream).use(stream);
        pool.handle(0, stream).use(stream);
        assertThat(library.streamsSet).hasValue(1);
        pool.handle(0, other).use(other);
        pool.handle(0, stream).use(stream);
        assertThat(library.streamsSet).hasValue(3);
    }

    @Test
    void theFirstStreamIsSetAlsoIfItIsTheDefaultOne() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, 0).use(0);
        assertThat(library.streamsSet).hasValue(1);
    }

    @Test
    void aHandleThatIsNewUnderAnOldNumberIsSetAgain() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream).use(stream);
        fixture.memory.streamClosing(0, stream);
        pool.handle(0, stream).use(stream);
        assertThat(library.streamsSet).hasValue(2);
    }

    @Test
    void threadsThatLiveAtOnceHaveDifferentHandles() throws InterruptedException {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        Set<Handle> seen = new HashSet<>();
        Thread[] threads = new Thread[8];
        var all = new java.util.concurrent.CountDownLatch(threads.length);
        for (int i = 0; i < threads.length; i++) {
            threads[i] = Thread.ofPlatform().start(() -> {
                Handle mine = pool.handle(0, stream);
                all.countDown();
                HandlePoolFixture.await(() -> all.getCount() == 0);
                synchronized (seen) {
                    seen.add(mine);
                }
            });
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(seen).hasSize(threads.length);
    }

    @Test
    void aSharedHandleServesTheNextThread() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withStrategy(HandleStrategy.SHARED));
        Handle first = HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        Handle second = HandlePoolFixture.onNewThread(() -> {
            Handle mine = pool.handle(0, other);
            mine.use(other);
            return mine;
        });
        assertThat(second).isSameAs(first);
        HandlePoolStatistics counted = pool.statistics(0);
        assertThat(counted.created()).isEqualTo(1);
        assertThat(counted.threads()).isEqualTo(2);
        assertThat(counted.reused()).isEqualTo(1);
    }

    @Test
    void aHandlePerThreadEndsWithTheThread() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withStrategy(HandleStrategy.PER_THREAD));
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        HandlePoolFixture.await(() -> library.destroyed.get() == 1);
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        assertThat(library.created).hasValue(2);
        HandlePoolFixture.await(() -> pool.statistics(0).alive() == 0);
    }

    @Test
    void theHandleOfAThreadThatDiesComesBack() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        assertThatThrownBy(() -> HandlePoolFixture.onNewThread(() -> {
                    pool.handle(0, stream);
                    throw new IllegalStateException("dies");
                }))
                .hasMessage("dies");
        HandlePoolFixture.await(() -> pool.statistics(0).idle() == 1);
        assertThat(pool.statistics(0).abandonedLeases()).as("it had none").isZero();
    }

    @Test
    void idleHandlesAreDestroyedWhenTheyAreOld() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withIdleAge(Duration.ofMillis(1)));
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        HandlePoolFixture.await(() -> pool.statistics(0).alive() == 0); // counted after the library's call
        assertThat(library.destroyed.get()).isEqualTo(1);
    }

    @Test
    void idleHandlesAreDestroyedOnRequest() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream);
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        assertThat(pool.trim(0, Duration.ofHours(1))).isZero();
        assertThat(pool.trim(0, Duration.ZERO)).isEqualTo(1);
        assertThat(library.alive()).isEqualTo(1);
    }

    @Test
    void aDestroyedHandleLeavesAsManyPlacesAsBefore() {
        var pool = fixture.open(HandlePoolFixture.soon().withMaxHandles(1));
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        assertThat(pool.trim(0, Duration.ZERO)).isEqualTo(1);
        pool.handle(0, stream).use(stream);
        assertThatExceptionOfType(HandleException.class)
                .isThrownBy(() -> HandlePoolFixture.onNewThread(() -> pool.handle(0, stream)));
    }

    @Test
    void aThreadThatIsInterruptedWhileItWaitsStaysSo() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withMaxHandles(1));
        pool.handle(0, stream);
        HandlePoolFixture.onNewThread(() -> {
            Thread.currentThread().interrupt();
            assertThatExceptionOfType(HandleException.class)
                    .isThrownBy(() -> pool.handle(0, stream))
                    .withMessageContaining("interrupted");
            assertThat(Thread.interrupted()).isTrue();
            return null;
        });
    }

    /// The handle of the thread that ended serves again, or a new one comes in its place.
    @ParameterizedTest
    @EnumSource(HandleStrategy.class)
    void aCallWaitsForAHandleWhereTheLimitIsReached(HandleStrategy strategy) throws InterruptedException {
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withStrategy(strategy).withMaxHandles(1));
        long begin = System.nanoTime();
        var isTaken = new java.util.concurrent.CountDownLatch(1);
        var isOver = new java.util.concurrent.CountDownLatch(1);
        Thread first = Thread.ofPlatform().start(() -> {
            pool.handle(0, stream).use(stream);
            isTaken.countDown();
            HandlePoolFixture.await(() -> isOver.getCount() == 0);
        });
        isTaken.await();
        Thread second = Thread.ofPlatform().start(() -> pool.handle(0, other).use(other));
        HandlePoolFixture.await(() -> pool.statistics(0).waits() == 1);
        isOver.countDown();
        first.join();
        second.join();
        assertThat(library.created).hasValue(strategy == HandleStrategy.SHARED ? 1 : 2);
        assertThat(pool.statistics(0).waitNanos()).isBetween(1L, System.nanoTime() - begin);
        assertThat(pool.statistics(0).peak()).isEqualTo(1);
    }

    @Test
    void aDurationMayBeForEver() {
        Duration ever = ChronoUnit.FOREVER.getDuration();
        var pool = fixture.open(
                HandlePoolOptions.DEFAULT.withMaxWait(ever).withIdleAge(ever).withCloseWait(ever));
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        HandlePoolFixture.await(() -> pool.statistics(0).idle() == 1);
        assertThat(pool.trim(0, ever)).isZero();
        pool.close();
    }

    @Test
    void aCallThatWaitedTooLongSaysWhatToDo() {
        var pool = fixture.open(HandlePoolFixture.soon().withMaxHandles(1));
        pool.handle(0, stream);
        assertThatExceptionOfType(HandleException.class)
                .isThrownBy(() -> HandlePoolFixture.onNewThread(() -> pool.handle(0, stream)))
                .withMessageContaining("all 1 handles of checked on device 0")
                .withMessageContaining("maxHandles");
    }

    @Test
    void aRefusedCreationIsTriedAgain() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        library.refusals.set(1);
        pool.handle(0, stream).use(stream);
        assertThat(pool.statistics(0).failedCreations()).isEqualTo(1);
        assertThat(pool.statistics(0).lastFailure()).contains("NOT_INITIALIZED");
    }

    @Test
    void aRefusedCreationFreesIdleHandles() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        var lease = pool.lease(0);
        HandlePoolFixture.onNewThread(() -> pool.handle(1, 0));
        library.refusals.set(2);
        assertThatExceptionOfType(HandleException.class)
                .isThrownBy(() -> HandlePoolFixture.onNewThread(() -> pool.handle(0, stream)))
                .withMessageContaining("NOT_INITIALIZED")
                .havingCause()
                .isInstanceOf(IllegalStateException.class);
        assertThat(pool.statistics(0).alive()).as("the lease's").isEqualTo(1);
        assertThat(pool.statistics(0).destroyed()).as("those that exist").isZero();
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream)).use(stream);
        lease.close();
    }

    @Test
    void closingDestroysAll() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream);
        pool.handle(1, 0);
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        pool.close();
        pool.close();
        assertThat(library.alive()).isZero();
        assertThatThrownBy(() -> pool.handle(0, stream))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
        assertThatThrownBy(() -> pool.lease(0)).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void aThreadThatIsInterruptedClosesThePoolAndStaysSo() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream);
        Thread.currentThread().interrupt();
        pool.close();
        assertThat(Thread.interrupted()).isTrue();
        assertThat(library.alive()).isZero();
    }

    @Test
    void aPoolIsNamedAfterItsLibrary() {
        var options = HandlePoolOptions.DEFAULT;
        assertThat(fixture.open(options)).hasToString("handles of checked, " + options);
    }

    @Test
    void closingWaitsForHandlesThatAreBeingDestroyed() {
        for (int i = 0; i < 30; i++) {
            var pool = fixture.open(HandlePoolOptions.DEFAULT.withStrategy(HandleStrategy.PER_THREAD));
            HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
            LockSupport.parkNanos(19_500_000); // about when the pool looks for threads that ended
            pool.close();
            assertThat(library.alive()).isZero();
        }
    }

    @Test
    void theDeviceMemoryClosesItsPools() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream);
        fixture.memory.close();
        assertThat(library.alive()).isZero();
    }

    @Test
    void handlesOfADeadContextAreNotTouched() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream);
        pool.handle(1, 0);
        fixture.gpu.faults().failOn(DriverCall.MEM_GET_INFO, 0, 1, CudaResult.ILLEGAL_ADDRESS);
        pool.close();
        assertThat(library.destroyed).hasValue(1);
        library.destroyed.incrementAndGet(); // the other went with its context
    }

    @Test
    void handlesOfAContextThatOnlyRefusesAQuestionAreDestroyed() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream);
        fixture.gpu.faults().failOn(DriverCall.MEM_GET_INFO, 0, 1, CudaResult.NOT_SUPPORTED);
        pool.close();
        assertThat(library.destroyed).hasValue(1);
    }

    @Test
    void theContextOfTheThreadStaysAsItWas() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        long outer = fixture.gpu.devices().enterContext(1);
        long before = context();
        pool.handle(0, stream).use(stream);
        assertThat(context()).isEqualTo(before);
        pool.close();
        assertThat(context()).isEqualTo(before);
        fixture.gpu.devices().leaveContext(1, outer);
    }

    private long context() {
        long context = fixture.gpu.devices().enterContext(0);
        fixture.gpu.devices().leaveContext(0, context);
        return context;
    }

    @Test
    void aClosedPoolIsForgotten() {
        WeakReference<Object> pool = new WeakReference<>(HandlePoolFixture.onNewThread(() -> {
            var closed = fixture.open(HandlePoolOptions.DEFAULT);
            closed.handle(0, stream).use(stream);
            closed.close();
            return closed;
        }));
        HandlePoolFixture.await(() -> {
            System.gc();
            return pool.refersTo(null);
        });
        assertThat(fixture.library.alive()).isZero();
    }

    @Test
    void aDeviceThatDoesNotExistIsRefused() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> pool.handle(2, stream))
                .withMessageContaining("there is no device 2");
    }
}
