package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;

/// What one thread of a task sees: what it holds, what it is told, and which room is made for it.
final class TaskRuleTests {
    private static final int DEVICE = 3;

    private final AtomicLong next = new AtomicLong(4096);
    private final List<Long> freed = new ArrayList<>();
    private final TaskArbiter arbiter = new TaskArbiter(new DeviceAllocator() {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return next.getAndAdd(4096);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            freed.add(address);
        }
    });
    private final Task task = arbiter.task(1, 0);

    private long allocate(long byteSize) {
        return arbiter.allocate(byteSize, DEVICE, 0);
    }

    private void free(long address, long byteSize) {
        arbiter.free(address, byteSize, DEVICE, 0);
    }

    private static DeviceOutOfMemoryException refusal(String detail) {
        return new DeviceOutOfMemoryException(100, DEVICE, detail);
    }

    @Test
    void aPatienceIsAtLeastAMillisecond() {
        DeviceAllocator upstream = arbiter.upstream();
        assertThat(new TaskArbiter(upstream, Duration.ofMillis(1)).threads()).isEmpty();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new TaskArbiter(upstream, Duration.ofNanos(999_999)))
                .withMessageContaining("must be at least 1 ms");
    }

    @Test
    void aTaskHoldsWhatItsThreadsAllocated() {
        task.run(() -> {
            long first = allocate(60);
            long second = allocate(30);
            assertThat(arbiter.ownedBlocks()).isEqualTo(2);
            free(first, 60);
            assertThat(task.statistics().heldBytes()).isEqualTo(30);
            assertThat(task.statistics().peakBytes()).isEqualTo(90);
            free(second, 30);
            free(allocate(10), 10);
            assertThat(task.statistics().heldBytes()).isZero();
            assertThat(task.statistics().peakBytes()).isEqualTo(90);
        });
        assertThat(arbiter.ownedBlocks()).isZero();
        assertThat(freed).hasSize(3);
    }

    @Test
    void anErrorSaysWhatLacked() {
        Task other = arbiter.task(2, 0);
        long[] held = {0};
        other.run(() -> held[0] = allocate(70));
        task.forceSplits(1, 0);
        task.run(() -> assertThatThrownBy(() -> allocate(50)).isInstanceOfSatisfying(SplitAndRetryOom.class, told -> {
            assertThat(told.device()).isEqualTo(DEVICE);
            assertThat(told.byteSize()).isEqualTo(50);
            assertThat(told.task()).isSameAs(task);
            assertThat(told.others()).isEqualTo("task 2 of priority 0 holds 70 bytes and has no thread inside");
            assertThat(told.getCause()).isNull();
        }));
        free(held[0], 70);
        task.forceSplits(1, 0);
        task.run(() -> assertThatThrownBy(() -> allocate(50))
                .isInstanceOfSatisfying(
                        SplitAndRetryOom.class,
                        told -> assertThat(told.others()).isEqualTo("no other task holds memory")));
        assertThat(task.statistics().splits()).isEqualTo(2);
        assertThat(new Refusal(50, DEVICE, null).surfacing().byteSize()).isEqualTo(50);
        DeviceOutOfMemoryException failure = refusal("full");
        assertThat(new Refusal(50, DEVICE, failure).surfacing()).isSameAs(failure);
    }

    @Test
    void eachFailedPieceIsLostOnce() throws InterruptedException {
        task.forceRetries(2, 0);
        long begun = System.nanoTime();
        task.call(() -> {
            Thread.sleep(50);
            assertThatThrownBy(() -> allocate(10)).isInstanceOf(RetryOom.class);
            return assertThatThrownBy(() -> allocate(10)).isInstanceOf(RetryOom.class);
        });
        assertThat(task.statistics().lostNanos()).isBetween(50_000_000L, System.nanoTime() - begun);
    }

    /// A part that closes.
    private static final class Part implements AutoCloseable {
        private final List<String> closed;
        private final int size;

        Part(int size, List<String> closed) {
            this.size = size;
            this.closed = closed;
        }

        List<Part> halves() {
            return size == 1 ? List.of() : List.of(new Part(size / 2, closed), new Part(size / 2, closed));
        }

        @Override
        public void close() {
            closed.add("part of " + size);
        }
    }

    /// The second of two parts can't be split.
    @Test
    void aRunThatFailsSaysWhatWasTried() {
        List<String> closed = new ArrayList<>();
        int[] calls = {0};
        task.run(() -> assertThatThrownBy(() -> Retry.withRetry(new Part(4, closed), Part::halves, part -> {
                    switch (calls[0]++) {
                        case 0, 1 -> task.forceRetries(1, 0);
                        case 2, 3 -> task.forceSplits(1, 0);
                        case 4 -> {}
                        default -> task.forceSplits(1, 0);
                    }
                    free(allocate(part.size), part.size);
                    return part.size;
                }))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("task 1 of priority 0 can't split its input further")
                .hasMessageContaining("it rolled back 2 times, split 2 times and finished 1 parts"));
        assertThat(closed).containsExactly("part of 2", "part of 1", "part of 1", "part of 2");
        assertThat(task.statistics().retries()).isEqualTo(2);
        assertThat(task.statistics().splits()).isEqualTo(3);
    }

    @Test
    void aPieceThatSucceededIsNotRolledBack() {
        task.run(() -> {
            TaskThread self = TaskThread.CURRENT.get();
            self.hasRolledBack = true;
            arbiter.task(9, 0).pieceSucceeded();
            assertThat(self.hasRolledBack).as("another task's").isTrue();
            task.pieceSucceeded();
            assertThat(self.hasRolledBack).isFalse();
        });
        task.pieceSucceeded();
        assertThat(TaskThread.CURRENT.get()).isNull();
    }

    // Room.

    private static LongSupplier refusedOnce(long address) {
        int[] left = {1};
        return () -> {
            if (left[0]-- > 0) {
                throw refusal("again");
            }
            return address;
        };
    }

    @Test
    void roomIsMadeOutsideTasksToo() {
        List<Long> asked = new ArrayList<>();
        RoomMaker maker = failure -> asked.add(failure.byteSize());
        arbiter.addRoomMaker(maker);
        assertThat(arbiter.arbitrate(refusal("full"), () -> 4096)).isEqualTo(4096);
        assertThat(asked).containsExactly(100L);
        task.run(() -> assertThat(arbiter.arbitrate(refusal("full"), refusedOnce(8192)))
                .isEqualTo(8192));
        assertThat(asked).hasSize(3);
        arbiter.removeRoomMaker(maker);
        assertThatThrownBy(() -> arbiter.arbitrate(refusal("full"), () -> 4096))
                .isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(asked).hasSize(3);
    }

    /// In a task the request is tried again before the thread waits; room may be made by then.
    @Test
    void roomThatIsMadeLaterServesATask() {
        int[] asked = {0};
        arbiter.addRoomMaker(_ -> asked[0]++ == 1);
        task.run(() -> assertThat(arbiter.arbitrate(refusal("full"), refusedOnce(8192)))
                .isEqualTo(8192));
        assertThat(asked[0]).isEqualTo(2);
        arbiter.checkInvariants();
    }

    @Test
    void aRefusalByALimitIsNotWaitedFor() {
        DeviceOutOfMemoryException limit = DeviceOutOfMemoryException.ofLimit(100, DEVICE, "limit", false);
        task.run(() ->
                assertThatThrownBy(() -> arbiter.arbitrate(limit, () -> 4096)).isSameAs(limit));
        task.run(() -> assertThatThrownBy(() -> arbiter.arbitrate(refusal("full"), () -> {
                    throw limit;
                }))
                .isSameAs(limit));
        arbiter.checkInvariants();
    }

    @Test
    void onlyTheThreadThatWasToldMayWait() throws InterruptedException {
        task.forceRetries(1, 0);
        RetryOom[] told = {null};
        task.run(() -> {
            try {
                allocate(10);
            } catch (RetryOom failure) {
                told[0] = failure;
            }
        });
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread.ofPlatform()
                .name("other")
                .start(() -> thrown.set(catchThrowable(told[0]::blockUntilReady)))
                .join();
        assertThat(thrown.get()).isInstanceOf(IllegalStateException.class).hasMessageContaining("thread other is not");
        assertThat(told[0].device()).isEqualTo(DEVICE);
        assertThat(TaskThread.CURRENT.get()).isNull();
    }
}
