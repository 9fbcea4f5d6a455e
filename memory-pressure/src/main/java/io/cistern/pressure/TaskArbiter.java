package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.OutOfMemoryArbiter;
import java.time.Duration;
import java.util.List;
import java.util.function.LongSupplier;

/// Lets tasks share a GPU that has less memory than they need together. Instead of failing, a task waits for the
/// others. If all wait, the least important one [rolls back][RetryOom]. If that is not enough, the most important
/// one goes on [with a smaller input][SplitAndRetryOom].
///
/// ```java
/// TaskArbiter arbiter = new TaskArbiter(upstream);
/// memory.setCurrent(memory.open("arbiter", arbiter));
/// …
/// arbiter.task(partition, priority).run(() -> {             // on each thread of the task
///     List<Table> parts = Retry.withRetry(rows, Rows::halves, part -> join(part));
/// });
/// ```
///
/// [ThreadState] shows the states of a thread. A thread that is in no task never waits for the arbiter:
/// its allocations may fail as they would without an arbiter. Memory that such a thread frees can serve
/// any task.
///
/// **Last resort.** The arbiter acts only after all [reclaim steps][io.cistern.diagnostics.ReclaimStep] of
/// the [device memory][io.cistern.DeviceMemory] that opened it have failed, so no task waits for memory
/// that is idle. If one of the program's limits refuses an allocation, no task waits. An arbiter that is
/// used without a device memory never makes a thread wait.
///
/// **Room.** Before any thread waits, the arbiter asks its [room makers][#addRoomMaker], for example a
/// [SpillStore], to free memory.
///
/// **Waiting for something else.** Tasks may also wait for one another through locks, futures or queues. A
/// thread that has been seen in such a wait for longer than the *patience* counts as waiting for a task. So
/// if all threads of tasks wait, one that waits for memory may have to roll back, or even split its input.
///
/// While the task of a thread in such a wait holds memory, no other task has to split its input,
/// because the thread may be waiting for a network or another process, and go on soon. Once the thread
/// has waited for [#LONGEST_WAIT], the arbiter treats it as part of a deadlock. The exceptions of other
/// tasks then say where the thread waits and how much memory its task holds. Code that has to wait even
/// longer should run in [#outside].
///
/// **Cost.** Outside tasks, the arbiter adds a thread-local read to an allocation, and two reads to a
/// free. Once there has been a task, a free also looks up its block in a table. The table has an entry
/// for each block that a task allocated, so that the task's bytes are known whichever thread frees the
/// block. An allocation and its free create no garbage.
///
/// **Threads and streams.** The rules of [DeviceAllocator] apply. An allocation in a task may wait; a
/// virtual thread releases its carrier while it waits.
public final class TaskArbiter extends AllocatorAdaptor implements OutOfMemoryArbiter {
    /// How long a thread must be seen waiting for something other than memory before it counts as waiting
    /// for a task, so that other tasks may have to roll back. That is longer than a thread usually takes to
    /// compute a result that another one waits for.
    public static final Duration DEFAULT_PATIENCE = Duration.ofMillis(100);

    /// How long a thread must be seen waiting for something other than memory before other tasks have to
    /// split their input, or fail, although the thread's task holds memory. That is longer than the usual
    /// timeouts of networks and shuffles.
    public static final Duration LONGEST_WAIT = Duration.ofMinutes(10);

    private final RoomMakers rooms = new RoomMakers();
    private final Arbitration arbitration;
    private final BlockOwners owners = new BlockOwners();

    /// Whether there was a task, so that blocks may have owners.
    private volatile boolean hasTasks;

    /// Creates an arbiter over an allocator, with the default patience.
    ///
    /// @param upstream the allocator that the tasks share
    public TaskArbiter(DeviceAllocator upstream) {
        this(upstream, DEFAULT_PATIENCE);
    }

    /// Creates an arbiter over an allocator.
    ///
    /// @param upstream the allocator that the tasks share
    /// @param patience how long a thread must be seen waiting for something other than memory before it
    ///     counts as waiting for a task, at least 1 ms
    /// @throws IllegalArgumentException if `patience` is less than 1 ms
    public TaskArbiter(DeviceAllocator upstream, Duration patience) {
        this(upstream, patience, LONGEST_WAIT);
    }

    TaskArbiter(DeviceAllocator upstream, Duration patience, Duration longestWait) {
        super(upstream);
        if (patience.compareTo(Duration.ofMillis(1)) < 0) {
            throw new IllegalArgumentException("patience is " + patience + ", but must be at least 1 ms");
        }
        arbitration = new Arbitration(owners, patience, longestWait);
    }

    /// Returns the task with an id if threads are inside it; otherwise a new task. The arbiter keeps a task
    /// only while threads are inside it or its blocks are live. So keep the returned object if you want the
    /// task's final [statistics][Task#statistics].
    ///
    /// @param id the task's number; of two tasks with the same priority, the one with the lower number goes
    ///     first
    /// @param priority tasks with a higher priority go first
    /// @throws IllegalArgumentException if a thread is in the task, and the task has another priority
    public Task task(long id, int priority) {
        hasTasks = true;
        return arbitration.task(id, priority);
    }

    /// Runs code that waits, possibly longer than the patience, for something outside all tasks. Meanwhile,
    /// the calling thread counts as running. The code must not allocate device memory.
    ///
    /// @throws X if the code throws it
    public <R, X extends Throwable> R outside(ScopedValue.CallableOp<? extends R, X> wait) throws X {
        TaskThread self = arbitration.current();
        if (self == null) {
            return wait.call();
        }
        boolean before = arbitration.setOutside(self, true);
        try {
            return wait.call();
        } finally {
            arbitration.setOutside(self, before);
        }
    }

    /// Adds a room maker. When an allocation is refused, in a task or outside, the arbiter asks the room
    /// makers in the order in which they were added.
    public void addRoomMaker(RoomMaker maker) {
        rooms.add(maker);
    }

    /// Removes a room maker.
    public void removeRoomMaker(RoomMaker maker) {
        rooms.remove(maker);
    }

    /// Notifies waiting threads that a room maker can free something that it could not free before, so that they
    /// may try again.
    ///
    /// @param device the device's ordinal
    /// @param byteSize how many bytes it can free
    public void roomCanBeMade(int device, long byteSize) {
        arbitration.freed(device, byteSize);
    }

    /// @throws DeviceOutOfMemoryException if the upstream throws it
    /// @throws TaskOom if a test [forced][Task#forceRetries] it
    @Override
    public long allocate(long byteSize, int device, long stream) {
        TaskThread self = arbitration.current();
        if (self == null) {
            return upstream().allocate(byteSize, device, stream);
        }
        ForcedOom forced = self.task.forced;
        if (forced != null && forced.takes()) {
            throw arbitration.told(self, forced.isSplit(), new Refusal(byteSize, device, null));
        }
        long address = upstream().allocate(byteSize, device, stream);
        own(address, self, byteSize, device, stream);
        if (forced != null) {
            forced.succeeded();
        }
        return address;
    }

    private void own(long address, TaskThread self, long byteSize, int device, long stream) {
        try {
            owners.put(address, self, byteSize);
        } catch (Throwable heapIsFull) {
            upstream().free(address, byteSize, device, stream);
            throw heapIsFull;
        }
        self.holds(byteSize);
    }

    /// Asks the room makers to free memory. If they free nothing more, a thread that is in a task waits for
    /// other tasks.
    ///
    /// @throws DeviceOutOfMemoryException outside tasks, if the room makers do not free enough; in a task,
    ///     if the thread is interrupted or a limit refuses another attempt
    /// @throws RetryOom if the thread's task has to roll back
    /// @throws SplitAndRetryOom if the thread's task has to go on with a part of its input
    @Override
    public long arbitrate(DeviceOutOfMemoryException refusal, LongSupplier attempt) {
        try {
            return rooms.retry(refusal, attempt);
        } catch (DeviceOutOfMemoryException failure) {
            TaskThread self = arbitration.current();
            if (self == null || failure.isByLimit()) {
                throw failure;
            }
            Refusal first = new Refusal(refusal.byteSize(), refusal.device(), failure);
            return arbitration.allocate(self, first, () -> makingRoom(attempt));
        }
    }

    private long makingRoom(LongSupplier attempt) {
        try {
            return attempt.getAsLong();
        } catch (DeviceOutOfMemoryException failure) {
            return rooms.retry(failure, attempt);
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        TaskThread owner = hasTasks ? owners.remove(address, byteSize) : null;
        try {
            upstream().free(address, byteSize, device, stream);
        } finally {
            if (owner != null) { // only now: until it is free, its task holds it
                owner.releases(byteSize);
            }
            arbitration.freed(device, byteSize);
        }
    }

    /// Returns one readable line for each thread of each task, with its state.
    public List<String> threads() {
        return arbitration.lines();
    }

    /// Checks the invariants of threads' states and of waiting. For tests, which may call it at any time.
    ///
    /// @throws IllegalStateException with the invariant that does not hold
    public void checkInvariants() {
        arbitration.check();
    }

    /// Returns the number of live blocks of tasks.
    int ownedBlocks() {
        return owners.size();
    }
}
