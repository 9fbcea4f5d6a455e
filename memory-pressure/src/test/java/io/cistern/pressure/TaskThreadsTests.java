package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The lists of threads against plain collections, in random order.
final class TaskThreadsTests {
    private static final Duration LONG = Duration.ofHours(1);
    private static final Comparator<TaskThread> FIRST = Comparator.<TaskThread>comparingInt(
                    thread -> -thread.task.priority())
            .thenComparingLong(thread -> thread.task.id())
            .thenComparingLong(thread -> thread.number);
    private static final Predicate<TaskThread> BLOCKED = thread -> thread.state == ThreadState.BLOCKED;

    private final Arbitration arbitration = new Arbitration(new BlockOwners(), LONG, LONG);
    private final ReentrantLock lock = new ReentrantLock();
    private final TaskThreads threads = new TaskThreads();
    private final List<Task> tasks = List.of(task(1, 0), task(2, 5), task(3, 5));
    private final Set<TaskThread> present = new LinkedHashSet<>();
    private final Set<TaskThread> lacking = new LinkedHashSet<>();
    private long entered;

    private Task task(long id, int priority) {
        return new Task(id, priority, arbitration);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void agreesWithPlainCollections(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        for (int i = 0; i < 500; i++) {
            change(random);
            compare();
        }
    }

    private void change(SplittableRandom random) {
        int dice = random.nextInt(10);
        if (present.isEmpty() || dice < 3) {
            TaskThread added = new TaskThread(tasks.get(random.nextInt(3)), arbitration, lock.newCondition());
            threads.add(added);
            assertThat(added.number).isEqualTo(++entered);
            present.add(added);
            return;
        }
        TaskThread any = new ArrayList<>(present).get(random.nextInt(present.size()));
        if (dice < 5) {
            present.remove(any);
            lacking.remove(any);
            threads.lacksNoMore(any);
            assertThat(threads.remove(any)).isEqualTo(present.stream().noneMatch(thread -> thread.task == any.task));
        } else if (dice < 7) {
            any.contends = true;
            any.lacks = new Refusal(100, random.nextInt(2), null);
            lacking.add(any);
            threads.lacks(any);
        } else if (dice < 8) {
            any.contends = false;
            lacking.remove(any);
            threads.lacksNoMore(any);
        } else {
            any.state = ThreadState.values()[random.nextInt(3)];
            any.expectedBytes = random.nextInt(100);
            any.heldBytes.set(random.nextInt(100));
        }
        free(random.nextInt(2), random.nextInt(1, 50));
    }

    private void free(int device, long byteSize) {
        List<Long> expected = present.stream()
                .map(thread -> thread.freedBytes + (isServedBy(thread, device) ? byteSize : 0))
                .toList();
        threads.freed(device, byteSize);
        assertThat(present).extracting(thread -> thread.freedBytes).isEqualTo(expected);
    }

    private boolean isServedBy(TaskThread thread, int device) {
        return lacking.contains(thread)
                && thread.contends
                && Objects.requireNonNull(thread.lacks).device() == device;
    }

    private void compare() {
        assertThat(threads.all()).containsExactlyElementsOf(present);
        assertThat(threads.size()).isEqualTo(present.size());
        assertThat(threads.countLacking()).isEqualTo(lacking.size());
        assertThat(threads.count(BLOCKED))
                .isEqualTo((int) present.stream().filter(BLOCKED).count());
        assertThat(threads.countLacking(BLOCKED))
                .isEqualTo((int) lacking.stream().filter(BLOCKED).count());
        assertThat(threads.first(BLOCKED))
                .isSameAs(lacking.stream().filter(BLOCKED).min(FIRST).orElse(null));
        assertThat(threads.last(BLOCKED))
                .isSameAs(lacking.stream().filter(BLOCKED).max(FIRST).orElse(null));
        assertThat(threads.outstandingBytes())
                .isEqualTo(present.stream()
                        .mapToLong(thread -> Math.max(0, thread.expectedBytes - thread.heldBytes.get()))
                        .sum());
        for (Task task : tasks) {
            assertThat(threads.anyBefore(task, BLOCKED)).isEqualTo(anyBefore(present, task));
            assertThat(threads.anyLackingBefore(task, BLOCKED)).isEqualTo(anyBefore(lacking, task));
            assertThat(threads.anyOfOthers(task, BLOCKED))
                    .isEqualTo(present.stream().filter(BLOCKED).anyMatch(thread -> thread.task != task));
        }
    }

    private static boolean anyBefore(Set<TaskThread> among, Task task) {
        return among.stream().filter(BLOCKED).anyMatch(thread -> {
            Task other = thread.task;
            return other.priority() != task.priority() ? other.priority() > task.priority() : other.id() < task.id();
        });
    }

    /// Whether the look comes too early or not.
    @Test
    void aThreadThatRunsIsNotSeenWaiting() {
        BlockedThreadDetector detector = new BlockedThreadDetector(lock, LONG, LONG);
        threads.add(new TaskThread(tasks.getFirst(), arbitration, lock.newCondition()));
        for (int look = 0; look < 100; look++) {
            assertThat(detector.allWait(threads)).isFalse();
        }
    }

    @Test
    void theCheckTellsWhichInvariantDoesNotHold() {
        TaskThread thread = new TaskThread(tasks.getFirst(), arbitration, lock.newCondition());
        threads.check();
        threads.add(thread);
        threads.check();
        thread.contends = true;
        assertBroken("is in the wrong list");
        threads.lacks(thread);
        assertBroken("contends for nothing");
        thread.lacks = new Refusal(100, 0, null);
        thread.freedBytes = 50;
        threads.check();
        thread.contends = false;
        thread.awaitsTurn = true;
        assertBroken("counts frees that it does not wait for");
        thread.freedBytes = 0;
        threads.check();
        thread.state = ThreadState.BLOCKED;
        assertBroken("is blocked without a request");
        thread.state = ThreadState.ROLLED_BACK;
        assertBroken("never rolled back");
        thread.hasRolledBack = true;
        assertBroken("all wait, and nobody will wake them");
        thread.awaitsTurn = false;
        thread.contends = true;
        assertBroken("waits for no turn");
    }

    private void assertBroken(String invariant) {
        assertThatIllegalStateException().isThrownBy(threads::check).withMessageContaining(invariant);
    }
}
