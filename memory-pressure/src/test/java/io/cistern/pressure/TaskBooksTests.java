package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.ConfigurationException;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

/// What is known of tasks, and what is no use of them.
final class TaskBooksTests extends TaskFixture {
    @Test
    void whatATaskHoldsIsKnownWhoeverFreesIt() {
        long[] address = new long[1];
        low.run(() -> address[0] = gpu.allocate(40));
        assertThat(low.statistics().heldBytes()).isEqualTo(40);
        gpu.free(address[0]);
        assertThat(low.statistics().heldBytes()).isZero();
        assertThat(low.statistics().peakBytes()).isEqualTo(40);
    }

    @Test
    void misuseIsToldApart() {
        high.run(() -> {
            assertThatThrownBy(() -> gpu.arbiter.task(1, 11))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("task 1 of priority 10 already exists");
            assertThat(gpu.arbiter.task(1, 10)).isSameAs(high);
            high.run(() -> {}); // again is no more
            assertThatThrownBy(() -> low.run(() -> {}))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("belongs to task 1");
        });
        assertThatThrownBy(() -> new TaskArbiter(gpu.arbiter, Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> gpu.memory.open("arbiter"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("needs the option 'upstream'");
        low.forceRetries(1, 0);
        RetryOom[] told = new RetryOom[1];
        low.run(() ->
                assertThatThrownBy(() -> gpu.allocate(1)).isInstanceOfSatisfying(RetryOom.class, oom -> told[0] = oom));
        FutureTask<Boolean> blockedThreads = gpu.start(middle, () -> {
            assertThatThrownBy(told[0]::blockUntilReady).isInstanceOf(IllegalStateException.class);
            return true;
        });
        assertThat(blockedThreads).succeedsWithin(Duration.ofSeconds(20));
    }

    /// Two threads ask for a task before either is inside.
    @Test
    void threadsThatEnterByTwoObjectsOfAnIdAreInOneTask() throws Exception {
        Task one = gpu.arbiter.task(7, 0);
        Task two = gpu.arbiter.task(7, 0);
        Task important = gpu.arbiter.task(7, 1);
        one.run(() -> {
            long address = gpu.allocate(10);
            FutureTask<Long> other = gpu.start(two, () -> gpu.allocate(20));
            assertThat(other).succeedsWithin(Duration.ofSeconds(20));
            gpu.free(other.resultNow());
            gpu.free(address);
            assertThat(gpu.start(important, () -> true)).failsWithin(Duration.ofSeconds(20));
        });
        assertThat(one.statistics().peakBytes()).isEqualTo(30);
        assertThat(two.statistics()).isEqualTo(one.statistics());
    }

    /// A task that nobody keeps is collected, whether threads were inside or not.
    @Test
    void tenThousandTasksLeaveNothing() {
        List<WeakReference<Task>> all = new ArrayList<>();
        for (int id = 100; id < 10_100; id++) {
            Task task = gpu.arbiter.task(id, 0);
            if (id % 2 == 0) {
                task.run(() -> gpu.free(gpu.allocate(10)));
            }
            all.add(new WeakReference<>(task));
        }
        for (int i = 0; i < 100 && all.stream().anyMatch(task -> task.get() != null); i++) {
            System.gc();
        }
        assertThat(all).allMatch(task -> task.get() == null);
        assertThat(gpu.arbiter.task(100, 5).priority()).isEqualTo(5);
    }

    /// A thread may be in tasks of two arbiters, each of which arbitrates over an allocator of its own.
    @Test
    void arbitersAreApart() {
        try (SmallGpu other = new SmallGpu()) {
            Task there = other.arbiter.task(1, 0);
            low.run(() -> {
                there.run(() -> {
                    long here = gpu.allocate(10);
                    long blockedThreads = other.allocate(20);
                    assertThat(low.statistics().heldBytes()).isEqualTo(10);
                    assertThat(there.statistics().heldBytes()).isEqualTo(20);
                    gpu.free(here);
                    other.free(blockedThreads);
                });
                long after = gpu.allocate(30);
                assertThat(low.statistics().heldBytes()).isEqualTo(30);
                gpu.free(after);
            });
        }
    }
}
