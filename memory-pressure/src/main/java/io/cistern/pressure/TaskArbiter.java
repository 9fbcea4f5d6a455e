package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.List;

/// Lets tasks share a GPU that has less memory than they want together: instead of failing, a task waits for the
/// others; when all wait, the least important one [rolls back][RetryOom]; when that is not enough, the most
/// important one goes on [with less at a time][SplitAndRetryOom].
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
/// [ThreadState] draws what happens to a thread. Threads that are in no task are let through: what they allocate
/// may fail as ever, and what they free helps all.
///
/// **Room.** Before anybody waits, those who [make room][#addRoomMaker] are asked, a [SpillStore] for example.
///
/// **Upstream.** One that finds by itself what was freed before, also on other streams, as Cistern's own do
/// before they refuse. What is refused by a limit of the program, which stands before the allocator, never gets
/// here.
///
/// **Waiting for something else.** Tasks may wait for one another by locks, futures, queues. A thread that was
/// seen to wait so for longer than the *patience* counts as waiting for a task: if all wait, one has to give way.
/// Where it waits for something outside (a network, another process) longer than that, it should [say
/// so][#outside].
///
/// **Cost.** Outside tasks: a thread-local read for an allocation, for a free two reads, and once tasks have run
/// a look into a table. In tasks: an entry of that table for each block, so that what a task holds is known
/// whoever frees it. A pair makes no garbage.
///
/// **Threads and streams.** As [DeviceAllocator] says; an allocation in a task may wait, and a virtual thread
/// leaves its carrier meanwhile.
public final class TaskArbiter extends AllocatorAdaptor {
    /// How long a thread must be seen waiting for something else before it counts as part of a deadlock:
    /// longer than what it usually takes to compute something for another thread.
    public static final Duration DEFAULT_PATIENCE = Duration.ofMillis(100);

    private final MakingRoom attempts;
    private final Arbitration arbitration;
    private final BlockOwners owners = new BlockOwners();

    /// Whether there was a task, and so may be owners.
    private volatile boolean hasTasks;

    /// Arbitrates over an allocator, with the usual patience.
    public TaskArbiter(DeviceAllocator upstream) {
        this(upstream, DEFAULT_PATIENCE);
    }

    /// Arbitrates over an allocator.
    ///
    /// @param patience how long a thread must be seen waiting for something else, at least 1 ms
    /// @throws IllegalArgumentException if it is less
    public TaskArbiter(DeviceAllocator upstream, Duration patience) {
        super(upstream);
        if (patience.compareTo(Duration.ofMillis(1)) < 0) {
            throw new IllegalArgumentException("a patience of " + patience + ", must be at least 1 ms");
        }
        attempts = new MakingRoom(upstream);
        arbitration = new Arbitration(patience);
    }

    /// The task of that id, if a thread is in it or has asked for it before; else a new one. Keep it to read
    /// its [statistics][Task#statistics] in the end.
    ///
    /// @param id its number; of two tasks with the same priority the lower one goes first
    /// @param priority higher goes first
    /// @throws IllegalArgumentException if there is one of another priority
    public Task task(long id, int priority) {
        hasTasks = true;
        return arbitration.task(id, priority);
    }

    /// Runs code that waits for something outside of all tasks, longer than the patience: meanwhile its
    /// thread counts as running. It may allocate nothing.
    ///
    /// @throws X what the code throws
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

    /// Has somebody asked for room from now on, after those who were added before, when an allocation is
    /// refused: in tasks and outside.
    public void addRoomMaker(RoomMaker maker) {
        attempts.add(maker);
    }

    /// Has somebody not asked for room any more.
    public void removeRoomMaker(RoomMaker maker) {
        attempts.remove(maker);
    }

    /// Says that a room maker can free something now that it could not before: whoever waits may try again.
    ///
    /// @param byteSize how much
    public void roomCanBeMade(int device, long byteSize) {
        arbitration.freed(device, byteSize);
    }

    /// @throws DeviceOutOfMemoryException outside tasks as the upstream says; in tasks if the thread is
    ///     interrupted
    /// @throws RetryOom if the thread's task shall roll back
    /// @throws SplitAndRetryOom if it shall go on with a part of its input
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
            if (self.contends) { // A callback of the upstream allocates within an attempt.
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

    /// What each thread of each task is doing, a line each: for people.
    public List<String> threads() {
        return arbitration.lines();
    }

    /// Checks its books: who waits, who holds what. For tests, which may call it at any time.
    ///
    /// @throws IllegalStateException naming what does not hold
    public void checkInvariants() {
        arbitration.check();
    }

    /// Blocks of tasks that are alive.
    int ownedBlocks() {
        return owners.size();
    }
}
