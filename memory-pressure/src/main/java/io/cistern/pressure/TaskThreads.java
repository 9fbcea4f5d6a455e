package io.cistern.pressure;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Holds the threads of all tasks, and finds those that go first. Guarded by the arbitration's lock. Nothing here
/// but [#all] needs Java heap, so a thread can always be removed and woken.
///
/// There may be tens of thousands of threads, of which few lack memory. Threads that lack memory or wait are in a
/// list of their own, and frequent operations look only at that list.
///
/// **Invariant** ([#check]): a thread is in the lacking list exactly while it contends or awaits its turn; so
/// all threads in a state that [waits][ThreadState#waits] are in it.
final class TaskThreads {
    private final Chain present = new Chain();
    private final Chain lacking = new Chain();
    private long added;

    /// A thread's place in one list.
    static final class Link {
        private final TaskThread thread;
        private boolean isIn;
        private @Nullable Link before;
        private @Nullable Link after;

        Link(TaskThread thread) {
            this.thread = thread;
        }
    }

    /// A list in the order of addition.
    private static final class Chain {
        private @Nullable Link first;
        private @Nullable Link last;
        private int size;

        /// Does nothing if the link is in the list.
        void add(Link link) {
            if (link.isIn) {
                return;
            }
            link.isIn = true;
            link.before = last;
            link.after = null;
            if (last == null) {
                first = link;
            } else {
                last.after = link;
            }
            last = link;
            size++;
        }

        /// Does nothing if the link is not in the list.
        void remove(Link link) {
            if (!link.isIn) {
                return;
            }
            link.isIn = false;
            if (link.before == null) {
                first = link.after;
            } else {
                link.before.after = link.after;
            }
            if (link.after == null) {
                last = link.before;
            } else {
                link.after.before = link.before;
            }
            size--;
        }

        int count(Predicate<TaskThread> which) {
            int count = 0;
            for (Link at = first; at != null; at = at.after) {
                count += which.test(at.thread) ? 1 : 0;
            }
            return count;
        }

        /// Returns the thread that goes first, or else last, of those; null if there is none.
        @Nullable
        TaskThread extreme(Predicate<TaskThread> which, boolean isFirst) {
            TaskThread found = null;
            for (Link at = first; at != null; at = at.after) {
                if (which.test(at.thread)
                        && (found == null || TaskThread.ORDER.compare(at.thread, found) < 0 == isFirst)) {
                    found = at.thread;
                }
            }
            return found;
        }

        boolean anyBefore(Task task, Predicate<TaskThread> which) {
            for (Link at = first; at != null; at = at.after) {
                if (which.test(at.thread) && at.thread.task.goesBefore(task)) {
                    return true;
                }
            }
            return false;
        }
    }

    void add(TaskThread thread) {
        thread.number = ++added;
        thread.task.threads++;
        present.add(thread.inPresent);
    }

    /// Removes a thread.
    ///
    /// @return whether it was the last one of its task
    boolean remove(TaskThread thread) {
        present.remove(thread.inPresent);
        return --thread.task.threads == 0;
    }

    int size() {
        return present.size;
    }

    /// Returns a copy.
    List<TaskThread> all() {
        List<TaskThread> all = new ArrayList<>(present.size);
        for (Link at = present.first; at != null; at = at.after) {
            all.add(at.thread);
        }
        return all;
    }

    /// Adds a thread to those that contend for memory or await their turn.
    void lacks(TaskThread thread) {
        lacking.add(thread.inLacking);
    }

    void lacksNoMore(TaskThread thread) {
        lacking.remove(thread.inLacking);
    }

    /// Returns the number of threads that contend for memory or await their turn.
    int countLacking() {
        return lacking.size;
    }

    /// Counts bytes that were freed for the threads that contend for memory of a device.
    void freed(int device, long byteSize) {
        for (Link at = lacking.first; at != null; at = at.after) {
            if (at.thread.contends && at.thread.lacksOn(device)) {
                at.thread.freedBytes += byteSize;
            }
        }
    }

    /// Returns how many threads there are of a kind, among all.
    int count(Predicate<TaskThread> which) {
        return present.count(which);
    }

    /// Returns how many threads there are of a kind, among those that lack memory.
    int countLacking(Predicate<TaskThread> which) {
        return lacking.count(which);
    }

    /// Returns whether a thread of a kind goes before a task, among all.
    boolean anyBefore(Task task, Predicate<TaskThread> which) {
        return present.anyBefore(task, which);
    }

    /// Returns whether a thread of a kind goes before a task, among those that lack memory.
    boolean anyLackingBefore(Task task, Predicate<TaskThread> which) {
        return lacking.anyBefore(task, which);
    }

    /// Returns whether there is a thread of a kind in a task other than this one, among all.
    boolean anyOfOthers(Task than, Predicate<TaskThread> which) {
        for (Link at = present.first; at != null; at = at.after) {
            if (at.thread.task != than && which.test(at.thread)) {
                return true;
            }
        }
        return false;
    }

    /// Returns the thread that goes first; of one task, the thread that entered first. Returns null if there is
    /// none.
    ///
    /// @param which a kind of threads that lack memory
    @Nullable
    TaskThread first(Predicate<TaskThread> which) {
        return lacking.extreme(which, true);
    }

    /// Returns the thread that goes last; of one task, the thread that entered last. Returns null if there is
    /// none.
    ///
    /// @param which a kind of threads that lack memory
    @Nullable
    TaskThread last(Predicate<TaskThread> which) {
        return lacking.extreme(which, false);
    }

    /// Returns the bytes that threads which began again have not allocated yet.
    long outstandingBytes() {
        long sum = 0;
        for (Link at = present.first; at != null; at = at.after) {
            sum += at.thread.outstandingBytes();
        }
        return sum;
    }

    /// @throws IllegalStateException with the invariant of fields and states that does not hold
    void check() {
        List<TaskThread> all = all();
        for (TaskThread thread : all) {
            require(thread.inLacking.isIn == (thread.contends || thread.awaitsTurn), thread, "is in the wrong list");
            require(thread.state != ThreadState.BLOCKED || thread.contends, thread, "is blocked without a request");
            require(!thread.contends || thread.lacks != null, thread, "contends for nothing");
            require(thread.state != ThreadState.ROLLED_BACK || thread.awaitsTurn, thread, "waits for no turn");
            require(thread.state != ThreadState.ROLLED_BACK || thread.hasRolledBack, thread, "never rolled back");
            require(thread.freedBytes == 0 || thread.contends, thread, "counts frees that it does not wait for");
        }
        if (!all.isEmpty() && all.stream().allMatch(thread -> thread.state.waits())) {
            throw new IllegalStateException("all wait, and nobody will wake them: " + all);
        }
    }

    private static void require(boolean holds, TaskThread thread, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(thread + " " + otherwise);
        }
    }
}
