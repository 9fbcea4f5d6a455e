package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.OpenOptions;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;

/// Who waits, and who goes on.
final class TaskArbiterTests extends TaskFixture {
    @Test
    void outsideTasksARefusalIsARefusal() {
        long held = gpu.allocate(60);
        assertThatThrownBy(() -> gpu.allocate(50)).isInstanceOf(DeviceOutOfMemoryException.class);
        gpu.free(held);
    }

    @Test
    void aRefusedTaskWaitsUntilAnotherFrees() throws Exception {
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> holder = hold(low, 60, enough);
        FutureTask<Long> waiter = allocateAndFree(high, 50);
        gpu.await(high, ThreadState.BLOCKED);
        gpu.arbiter.checkInvariants();

        enough.countDown();

        assertThat(waiter.get()).isEqualTo(50);
        assertThat(holder.get()).isEqualTo(60);
        assertThat(high.statistics().blockedNanos()).isPositive();
        assertThat(high.statistics().retries()).isZero();
        assertThat(low.statistics().peakBytes()).isEqualTo(60);
    }

    @Test
    void whatIsFreedOutsideTasksHelpsToo() throws Exception {
        long held = gpu.allocate(60);
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> holder = hold(low, 10, enough);
        FutureTask<Long> waiter = allocateAndFree(high, 50);
        gpu.await(high, ThreadState.BLOCKED);

        gpu.free(held);

        assertThat(waiter.get()).isEqualTo(50);
        enough.countDown();
        holder.get();
    }

    @Test
    void theFirstByPriorityGoesOnFirst() throws Exception {
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> holder = hold(gpu.arbiter.task(9, 99), 90, enough);
        BlockingQueue<Task> order = new LinkedBlockingQueue<>();
        List<FutureTask<Boolean>> waiters = List.of(low, high, middle).stream()
                .map(task -> gpu.start(task, () -> {
                    long address = gpu.allocate(60);
                    order.add(task);
                    for (Task after : List.of(middle, low)) { // An attempt in vain that is under way may still succeed.
                        if (!order.contains(after)) {
                            gpu.await(after, ThreadState.BLOCKED);
                        }
                    }
                    gpu.free(address);
                    return true;
                }))
                .toList();
        for (Task task : List.of(low, middle, high)) {
            gpu.await(task, ThreadState.BLOCKED);
        }

        enough.countDown();

        holder.get();
        for (FutureTask<Boolean> waiter : waiters) {
            waiter.get();
        }
        assertThat(order).containsExactly(high, middle, low);
    }

    @Test
    void oneFreeServesAllThatFit() throws Exception {
        CountDownLatch enough = new CountDownLatch(1);
        CountDownLatch both = new CountDownLatch(2);
        FutureTask<Long> holder = hold(gpu.arbiter.task(9, 99), 90, enough);
        List<FutureTask<Boolean>> waiters = List.of(low, high).stream()
                .map(task -> gpu.start(task, () -> {
                    long address = gpu.allocate(50);
                    both.countDown();
                    both.await(); // has it while the other one has
                    gpu.free(address);
                    return true;
                }))
                .toList();
        gpu.await(low, ThreadState.BLOCKED);
        gpu.await(high, ThreadState.BLOCKED);

        enough.countDown();

        holder.get();
        for (FutureTask<Boolean> waiter : waiters) {
            assertThat(waiter.get()).isTrue();
        }
    }

    /// The free falls between the refusal and the moment from which frees are told.
    @Test
    void aFreeRightAfterTheRefusalIsNotMissed() throws Exception {
        TaskArbiter[] arbiter = new TaskArbiter[1];
        boolean[] free = {false};
        DeviceAllocator upstream = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                if (!free[0]) {
                    arbiter[0].free(4096, byteSize, device, stream); // by anybody
                    throw new DeviceOutOfMemoryException(byteSize, device, "just now");
                }
                return 4096;
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                free[0] = true;
            }
        };
        arbiter[0] = new TaskArbiter(upstream, Duration.ofHours(1));
        Task sleeping = arbiter[0].task(1, 0);
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Boolean> other = gpu.start(
                sleeping,
                () -> arbiter[0].outside(() -> {
                    enough.await();
                    return true;
                }));
        Task task = arbiter[0].task(2, 0);

        Allocator allocator = gpu.memory.open(OpenOptions.made("fixed", arbiter[0]));
        long address = task.<Long, RuntimeException>call(() -> allocator.allocate(10, 0, 0));
        assertThat(address).isEqualTo(4096);
        gpu.free(address);

        enough.countDown();
        other.get();
        assertThat(task.statistics().blockedNanos()).isZero();
    }

    @Test
    void anInterruptedThreadIsRefusedAndStaysInterrupted() throws Exception {
        CountDownLatch enough = new CountDownLatch(1);
        FutureTask<Long> holder = hold(low, 60, enough);
        FutureTask<Boolean> waiter = gpu.start(high, () -> {
            Thread.currentThread().interrupt();
            assertThatThrownBy(() -> gpu.allocate(50)).isInstanceOf(DeviceOutOfMemoryException.class);
            return Thread.interrupted();
        });
        assertThat(waiter.get()).isTrue();
        enough.countDown();
        holder.get();
    }
}
