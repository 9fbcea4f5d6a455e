package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.List;

/// Lets tasks share a GPU that has less memory than they want together. Instead of failing, a task waits for
/// the others. If all wait, the least important one [rolls back][RetryOom]. If that is not enough, the most
/// important one goes on [with a smaller input][SplitAndRetryOom].
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
/// [ThreadState] draws the states of a thread. A thread that is in no task is not held up: its allocations may
/// fail as without an arbiter, and its frees help all tasks.
///
/// **Room.** Before any thread waits, the arbiter asks its [room makers][#addRoomMaker], for example a
/// [SpillStore].
///
/// **Upstream.** The upstream must find by itself memory that was freed before, also on other streams, as
/// Cistern's own allocators do before they refuse. A refusal by a limit of the program comes before the
/// allocator and never gets here.
///
/// **Waiting for something else.** Tasks may wait for one another by locks, futures or queues. A thread that
/// was seen waiting like that for longer than the *patience* counts as waiting for a task; if all threads wait,
/// one has to give way. A thread that waits longer for something outside all tasks, such as a network or
/// another process, should [say so][#outside].
///
/// **Cost.** Outside tasks, an allocation pays a thread-local read; a free pays two reads and, once tasks have
/// run, a look into a table. In tasks, each block has an entry in that table, so that a task's bytes are known
/// whichever thread frees them. An allocation and its free make no garbage.
///
/// **Threads and streams.** As for [DeviceAllocator]. An allocation in a task may wait; a virtual thread leaves
/// its carrier meanwhile.
public final class TaskArbiter extends AllocatorAdaptor {
    /// How long a thread must be seen waiting for something else before it counts as part of a deadlock: longer
    /// than another thread usually computes the result that it waits for.
    public static final Duration DEFAULT_PATIENCE = Duration.ofMillis(100);

    private final MakingRoom attempts;
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
    /// @param patience how long a thread must be seen waiting for something else before it counts, at least 1
    ///     ms
    /// @throws IllegalArgumentException if `patience` is less
    public TaskArbiter(DeviceAllocator upstream, Duration patience) {
        super(upstream);
        if (patience.compareTo(Duration.ofMillis(1)) < 0) {
            throw new IllegalArgumentException("a patience of " + patience + ", must be at least 1 ms");
        }
        attempts = new MakingRoom(upstream);
        arbitration = new Arbitration(patience);
    }

    /// Returns the task of an id, if a thread is in it or has requested it before; otherwise a new one. A
    /// program that wants its final [statistics][Task#statistics] keeps it.
    ///
    /// @param id the task's number; of two tasks with the same priority the lower one goes first
    /// @param priority a higher priority goes first
    /// @throws IllegalArgumentException if the task exists with another priority
    public Task task(long id, int priority) {
        hasTasks = true;
        return arbitration.task(id, priority);
    }

    /// Runs code that waits, possibly longer than the patience, for something outside all tasks; meanwhile its
    /// thread counts as running. The code must not allocate device memory.
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

    /// Adds a room maker. When an allocation is refused, in a task or outside, room makers are asked in the
    /// order in which they were added.
    public void addRoomMaker(RoomMaker maker) {
        attempts.add(maker);
    }

    /// Removes a room maker; it is not asked any more.
    public void removeRoomMaker(RoomMaker maker) {
        attempts.remove(maker);
    }

    /// Tells waiting threads that a room maker can free something that it could not free before, so that they
    /// may try again.
    ///
    /// @param device the device's ordinal
    /// @param byteSize how many bytes it can free
    public void roomCanBeMade(int device, long byteSize) {
        arbitration.freed(device, byteSize);
    }

    /// @throws DeviceOutOfMemoryException outside tasks if the upstream throws it; in a task if the thread is
    ///     interrupted
    /// @throws RetryOom if the thread's task has to roll back
    /// @throws SplitAndRetryOom if it has to go on with a part of its input
    @Override
    public long allocate(long byteSize, int device, long stream) {
        TaskThread self = arbitration.current();
        if (self == null) {
            return attempts.allocate(byteSize, device, stream);
        }
        failIfForced(self, byteSize, device);
        long address = allocate(self, byteSize, device, stream);
        owners.put(address, self);
        arbitration.holds(self, byteSize);
        return address;
    }

    private long allocate(TaskThread self, long byteSize, int device, long stream) {
        try {
            return attempts.allocate(byteSize, device, stream);
        } catch (DeviceOutOfMemoryException failure) {
            if (self.contends) { // a callback of the upstream allocates within an attempt
                throw failure;
            }
            return arbitration.allocate(self, attempts, new Refusal(byteSize, device, failure), stream);
        }
    }

    private void failIfForced(TaskThread self, long byteSize, int device) {
        ForcedOom forced = self.task.forced;
        if (forced != null && forced.takes()) {
            arbitration.force(self, forced, new Refusal(byteSize, device, null));
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        TaskThread owner = hasTasks ? owners.remove(address) : null;
        if (owner != null) {
            arbitration.releases(owner, byteSize);
        }
        upstream().free(address, byteSize, device, stream);
        arbitration.freed(device, byteSize);
    }

    /// Returns one line for each thread of each task, with its state, for people.
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
