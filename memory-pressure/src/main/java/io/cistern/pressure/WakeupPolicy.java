package io.cistern.pressure;

import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Decides which thread goes on and which gives up: the rules between the states of [ThreadState]. Guarded by
/// the arbitration's lock.
///
/// **Something was freed** (`pass`). The first blocked thread for which enough was freed tries again. Whether
/// it succeeds or fails, it then passes the turn to the next such thread, so that no thread that goes after it
/// overtakes it meanwhile. If no thread is blocked, the first one that has rolled back begins again, under two
/// conditions. The memory that it lacked must be there now, besides memory that others that began again have
/// not taken yet. And no thread that goes before it may still be rolling back.
///
/// **All wait** (`breakDeadlock`). Each thread that begins to wait checks this, and a waiting thread does from
/// time to time:
///
/// 1. If something was freed since a blocked thread's attempt, too little to wake it before, that thread tries
///    again.
/// 2. If no thread is blocked, the first one that has rolled back begins again.
/// 3. Otherwise the last blocked thread rolls back; threads whose tasks hold memory are taken first.
/// 4. But if that thread alone is blocked, has rolled back before, and goes before all that have rolled back,
///    it splits.
///
/// **Termination.** The first of all tasks rolls back at most once for each piece of work, when all others
/// wait, rolled back; after that it splits. A piece that can't be split any more is refused for good, and its
/// task ends. So the first task ends, and then the next one is the first.
final class WakeupPolicy {
    /// A blocked thread is woken when this fraction of its request was freed since its last attempt. So there
    /// are at most four failed attempts for each request's worth of frees. A failed attempt is expensive, since
    /// allocators wait for the device and give back all idle memory before they refuse.
    private static final int WORTH_A_TRY = 4;

    private final TaskThreads threads;
    private final LongAdder heldBytes;
    private final BlockedThreadDetector blockedThreads;

    /// @param heldBytes the bytes that all tasks hold
    WakeupPolicy(TaskThreads threads, LongAdder heldBytes, BlockedThreadDetector blockedThreads) {
        this.threads = threads;
        this.heldBytes = heldBytes;
        this.blockedThreads = blockedThreads;
    }

    static boolean isWorthATry(TaskThread thread) {
        Refusal lacks = thread.lacks;
        return lacks != null && thread.freedBytes >= Math.max(1, lacks.byteSize() / WORTH_A_TRY);
    }

    /// Wakes a thread after another one has left its task, since there is one fewer to compete with.
    void afterEnd() {
        wakeInTurn(ableToGoOn());
    }

    /// Returns the first blocked thread for which anything was freed or, if no thread is blocked, the first
    /// that has rolled back.
    private @Nullable TaskThread ableToGoOn() {
        boolean anyBlocked = threads.count(ThreadState.BLOCKED) > 0;
        return anyBlocked
                ? threads.first(ThreadState.BLOCKED, thread -> thread.freedBytes > 0)
                : threads.first(ThreadState.ROLLED_BACK, _ -> true);
    }

    /// Wakes the first thread that is worth another attempt.
    void pass() {
        TaskThread next = threads.first(ThreadState.BLOCKED, WakeupPolicy::isWorthATry);
        if (next == null && threads.count(ThreadState.BLOCKED) == 0) {
            next = threads.first(ThreadState.ROLLED_BACK, _ -> true);
            if (next != null && !mayBeginAgain(next)) {
                return;
            }
        }
        wakeInTurn(next);
    }

    /// Wakes a thread, unless a thread that goes before it is making an attempt; that one passes the turn when
    /// the attempt ends.
    private void wakeInTurn(@Nullable TaskThread next) {
        if (next != null
                && !threads.anyLacking(other ->
                        other.contends && other.state == ThreadState.RUNNING && other.task.goesBefore(next.task))) {
            wake(next);
        }
    }

    /// Returns whether the memory that a thread lacked is there now, as far as tasks hold it. Memory freed by a
    /// thread that goes before it and is rolling back now is not for it: otherwise the two would take turns for
    /// ever.
    private boolean mayBeginAgain(TaskThread thread) {
        return heldBytes.sum() + threads.outstandingBytes() + thread.neededBytes <= thread.heldByAll
                && !threads.any(other -> other.state == ThreadState.ROLLING_BACK && other.task.goesBefore(thread.task));
    }

    static void wake(@Nullable TaskThread next) {
        if (next != null) {
            if (next.state == ThreadState.ROLLED_BACK) {
                next.expectedBytes = next.neededBytes;
            }
            next.state = ThreadState.RUNNING;
            next.wakeUp.signal();
        }
    }

    void breakDeadlock() {
        if (!allWait()) {
            return;
        }
        TaskThread again = ableToGoOn();
        if (again != null) {
            wake(again);
            return;
        }
        TaskThread victim = threads.last(ThreadState.BLOCKED, thread -> thread.task.heldBytes() > 0);
        if (victim == null) {
            victim = threads.last(ThreadState.BLOCKED, _ -> true);
        }
        if (victim != null) {
            giveUp(victim);
        }
    }

    private void giveUp(TaskThread victim) {
        boolean alone = threads.count(ThreadState.BLOCKED) == 1
                && !threads.anyLacking(
                        other -> other.state == ThreadState.ROLLED_BACK && other.task.goesBefore(victim.task));
        if (alone && victim.hasRolledBack) {
            victim.state = ThreadState.SPLITTING;
        } else {
            victim.state = ThreadState.ROLLING_BACK;
            victim.hasRolledBack = true;
            victim.heldByAll = heldBytes.sum();
            victim.neededBytes = victim.heldBytes.get() + (victim.lacks == null ? 0 : victim.lacks.byteSize());
        }
        victim.wakeUp.signal();
    }

    /// Returns whether no thread can go on unless the arbiter wakes one.
    private boolean allWait() {
        long waiting = threads.countWaiting();
        return waiting > 0 && (waiting == threads.all().size() || blockedThreads.allWait(threads.all()));
    }
}
