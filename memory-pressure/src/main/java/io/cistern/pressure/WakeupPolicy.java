package io.cistern.pressure;

import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Decides which thread goes on and which gives up: the rules between the states of [ThreadState]. Guarded by
/// the arbitration's lock.
///
/// **Something was freed** (`pass`). The first blocked thread for which enough was freed tries again. Whether it
/// succeeds or fails, it then passes the turn to the next such thread, so that no thread that goes after it
/// overtakes it meanwhile. If no thread is blocked, the first one that has rolled back begins again, under two
/// conditions. The memory that it lacked must be there now, in addition to the memory that threads which already
/// began again have yet to allocate. And no thread that goes before it may still be rolling back.
///
/// **All wait** (`breakDeadlock`). Each thread that begins to wait checks this, and a waiting thread does from
/// time to time:
///
/// 1. If something was freed since a blocked thread's attempt, but too little to wake it, that thread now tries
///    again.
/// 2. If no thread is blocked, the first one that has rolled back begins again.
/// 3. Otherwise the last blocked thread rolls back; threads whose tasks hold memory are taken first.
/// 4. But if that thread alone is blocked, has rolled back before, and goes before all that have rolled back,
///    it splits; unless a thread of another task that holds memory waits elsewhere and may still free it.
///
/// **Termination.** The first of all tasks rolls back at most once for each piece of work, while all others wait
/// after rolling back. After that it splits, or waits for threads that wait elsewhere until each of them goes on or
/// reaches the longest wait. A piece that can't be split any more is refused for good, and its task ends. So the
/// first task ends, and then the next one is the first.
///
/// Nothing here needs Java heap, except the look at a thread that has waited elsewhere for some time.
@SuppressWarnings("UnnecessaryLambda") // a constant needs no Java heap where it is used
final class WakeupPolicy {
    /// A blocked thread is woken when its request, divided by this, was freed since its last attempt. So a
    /// request's worth of frees causes at most this many failed attempts. A failed attempt is expensive, since
    /// allocators wait for the device and give back all idle memory before they refuse.
    private static final int WORTH_A_TRY = 4;

    private static final Predicate<TaskThread> BLOCKED = thread -> thread.state == ThreadState.BLOCKED;
    private static final Predicate<TaskThread> ROLLED_BACK = thread -> thread.state == ThreadState.ROLLED_BACK;
    private static final Predicate<TaskThread> ROLLING_BACK = thread -> thread.state == ThreadState.ROLLING_BACK;
    private static final Predicate<TaskThread> WAITS = thread -> thread.state.waits();
    private static final Predicate<TaskThread> WORTH_A_TRY_NOW =
            thread -> thread.state == ThreadState.BLOCKED && isWorthATry(thread);
    private static final Predicate<TaskThread> BLOCKED_WITH_FREES =
            thread -> thread.state == ThreadState.BLOCKED && thread.freedBytes > 0;
    private static final Predicate<TaskThread> BLOCKED_HOLDING =
            thread -> thread.state == ThreadState.BLOCKED && thread.task.heldBytes() > 0;
    private static final Predicate<TaskThread> MAKES_AN_ATTEMPT =
            thread -> thread.contends && thread.state == ThreadState.RUNNING;

    private final TaskThreads threads;
    private final BlockOwners owners;
    private final BlockedThreadDetector blockedThreads;

    WakeupPolicy(TaskThreads threads, BlockOwners owners, BlockedThreadDetector blockedThreads) {
        this.threads = threads;
        this.owners = owners;
        this.blockedThreads = blockedThreads;
    }

    static boolean isWorthATry(TaskThread thread) {
        Refusal lacks = thread.lacks;
        return lacks != null && thread.freedBytes >= Math.max(1, lacks.byteSize() / WORTH_A_TRY);
    }

    /// Returns a thread that waits; null if none does.
    @Nullable
    TaskThread firstWaiting() {
        return threads.first(WAITS);
    }

    /// Wakes a thread after another one has left its task, since there is one fewer to compete with.
    void afterEnd() {
        wakeInTurn(ableToGoOn());
    }

    /// Returns the first blocked thread for which anything was freed or, if no thread is blocked, the first
    /// that has rolled back.
    private @Nullable TaskThread ableToGoOn() {
        return threads.first(anyIsBlocked() ? BLOCKED_WITH_FREES : ROLLED_BACK);
    }

    private boolean anyIsBlocked() {
        return threads.countLacking(BLOCKED) > 0;
    }

    /// Wakes the first thread for which another attempt is worthwhile.
    void pass() {
        TaskThread next = threads.first(WORTH_A_TRY_NOW);
        if (next == null && !anyIsBlocked()) {
            next = threads.first(ROLLED_BACK);
            if (next != null && !mayBeginAgain(next)) {
                return;
            }
        }
        wakeInTurn(next);
    }

    /// Wakes a thread, unless a thread that goes before it is making an attempt; that one passes the turn when
    /// the attempt ends.
    private void wakeInTurn(@Nullable TaskThread next) {
        if (next != null && !threads.anyLackingBefore(next.task, MAKES_AN_ATTEMPT)) {
            wake(next);
        }
    }

    /// Returns whether the memory that a thread lacked is there now, as far as tasks hold it. Memory freed by a
    /// thread that goes before it and is rolling back now is not for it: otherwise the two would take turns
    /// forever.
    private boolean mayBeginAgain(TaskThread thread) {
        return owners.heldBytes() + threads.outstandingBytes() + thread.neededBytes <= thread.heldByAll
                && !threads.anyBefore(thread.task, ROLLING_BACK);
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
        TaskThread victim = threads.last(BLOCKED_HOLDING);
        victim = victim != null ? victim : threads.last(BLOCKED);
        if (victim != null) {
            giveUp(victim);
        }
    }

    private void giveUp(TaskThread victim) {
        boolean alone = threads.countLacking(BLOCKED) == 1 && !threads.anyLackingBefore(victim.task, ROLLED_BACK);
        if (!alone || !victim.hasRolledBack) {
            victim.state = ThreadState.ROLLING_BACK;
            victim.hasRolledBack = true;
            victim.heldByAll = owners.heldBytes();
            victim.neededBytes = victim.heldBytes.get() + (victim.lacks == null ? 0 : victim.lacks.byteSize());
            victim.wakeUp.signal();
        } else if (!blockedThreads.mayFree(threads, victim.task)) {
            victim.state = ThreadState.SPLITTING;
            victim.wakeUp.signal();
        }
    }

    /// Returns whether no thread can go on unless the arbiter wakes one.
    private boolean allWait() {
        int waiting = threads.countLacking(WAITS);
        return waiting > 0 && (waiting == threads.size() || blockedThreads.allWait(threads));
    }
}
