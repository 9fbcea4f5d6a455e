package io.cistern.pressure;

import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Whose turn it is to go on, and whose to give up: the rules between the states of [ThreadState]. Guarded by the
/// arbitration's lock.
///
/// **Something was freed** (`pass`). The first blocked thread for which enough was freed tries again; who
/// succeeds or fails passes the turn to the next such one, so that nobody is overtaken meanwhile by one who goes
/// after it. If nobody is blocked, the first one that has rolled back begins again, if what it lacked is there
/// now, beside what others that began again have not taken yet, and if nobody who goes before it is still rolling
/// back.
///
/// **All wait** (`breakDeadlock`), looked at by whoever begins to wait, and from time to time by those who do:
///
/// 1. something was freed since a blocked thread's attempt, too little to wake it before: it tries again;
/// 2. nobody is blocked: the first one that has rolled back begins again;
/// 3. the last blocked thread of those whose tasks hold anything, else the last one, rolls back;
/// 4. but if it alone is blocked, has rolled back before, and goes before all that have: it splits.
///
/// **It ends.** The first of all tasks rolls back at most once a piece of work, when all others wait, rolled
/// back; after that it splits. A piece that can't be split any more is refused for good, and its task ends. So
/// the first one ends, and then the next is the first.
final class WakeupPolicy {
    /// A blocked thread is woken when this part of its request was freed since its last attempt: at most four
    /// attempts in vain for each request's worth of frees. An attempt in vain is expensive, since allocators
    /// wait for the device and give back all that is idle before they refuse.
    private static final int WORTH_A_TRY = 4;

    private final TaskThreads threads;
    private final LongAdder heldBytes;
    private final BlockedThreadDetector blockedThreads;

    /// @param heldBytes of all tasks
    WakeupPolicy(TaskThreads threads, LongAdder heldBytes, BlockedThreadDetector blockedThreads) {
        this.threads = threads;
        this.heldBytes = heldBytes;
        this.blockedThreads = blockedThreads;
    }

    static boolean isWorthATry(TaskThread thread) {
        Refusal lacks = thread.lacks;
        return lacks != null && thread.freedBytes >= Math.max(1, lacks.byteSize() / WORTH_A_TRY);
    }

    /// A thread has left its task: there is one fewer to compete with.
    void afterEnd() {
        wakeInTurn(ableToGoOn());
    }

    /// The first blocked thread for which anything was freed, or if nobody is blocked the first that has
    /// rolled back.
    private @Nullable TaskThread ableToGoOn() {
        boolean anyBlocked = threads.count(ThreadState.BLOCKED) > 0;
        return anyBlocked
                ? threads.first(ThreadState.BLOCKED, thread -> thread.freedBytes > 0)
                : threads.first(ThreadState.ROLLED_BACK, _ -> true);
    }

    /// Wakes the first thread for which another attempt is worth it.
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

    /// Lets the attempt of a thread that goes before this one end first, if there is one: it passes the turn
    /// then.
    private void wakeInTurn(@Nullable TaskThread next) {
        if (next != null
                && !threads.anyLacking(other ->
                        other.contends && other.state == ThreadState.RUNNING && other.task.goesBefore(next.task))) {
            wake(next);
        }
    }

    /// Whether what it lacked is there now, as far as tasks are concerned. What someone frees who goes before
    /// it and rolls back now is not for it: the two would take turns for ever.
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

    /// Whether nobody can go on unless somebody here is woken.
    private boolean allWait() {
        long waiting = threads.countWaiting();
        return waiting > 0 && (waiting == threads.all().size() || blockedThreads.allWait(threads.all()));
    }
}
