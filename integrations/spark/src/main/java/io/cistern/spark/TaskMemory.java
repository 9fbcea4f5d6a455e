package io.cistern.spark;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.pressure.Retry;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.pressure.Task;
import io.cistern.pressure.TaskStatistics;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.spark.TaskContext;
import org.jspecify.annotations.Nullable;

/// The device memory of a Spark task. From its start to its end the task's thread is in a scope of a pool of its
/// own: what it allocates by whatever way of [DeviceMemory] counts there, and what is left at the end is freed and
/// reported, also when the task fails or is killed.
///
/// ```java
/// TaskMemory memory = TaskMemory.current();
/// List<Long> sums = memory.retry(rows, Rows::halves, part -> {
///     try (DeviceBuffer x = DeviceBuffer.allocate(part.byteSize(), memory.stream())) {
///         …
///     }
/// });
/// ```
///
/// **Sharing.** In [#call] and [#retry] the task shares its device with the executor's other tasks by the rules of
/// [io.cistern.pressure.TaskArbiter]: it may wait, roll back and split. Elsewhere an allocation fails where memory is
/// short.
///
/// **After the task** its blocks are gone: closing a buffer of it then is a mistake.
///
/// **Threads.** The task's thread is in the scope. Other threads of the task enter by [#call].
public final class TaskMemory {
    private final ExecutorMemory executor;
    private final TaskContext context;
    private final TaskName name;
    private final Thread thread = Thread.currentThread();
    private final Allocator pool;
    private final Task task;
    private final Optional<MemoryLimit> limit;
    private final Scope scope;
    private final Set<SpillableBuffer> spillables = ConcurrentHashMap.newKeySet();
    private final Deque<AutoCloseable> closedAtEnd = new ArrayDeque<>();
    private @Nullable CudaStream stream;
    private volatile boolean inArbiter;

    /// Blocks pass through: it is there so that they are counted as the task's.
    private static final class Pool extends AllocatorAdaptor {
        Pool(DeviceAllocator upstream) {
            super(upstream);
        }
    }

    private TaskMemory(ExecutorMemory executor, TaskContext context) {
        this.executor = executor;
        this.context = context;
        name = TaskName.of(context);
        limit = executor.taskLimit().forTask(name.toString());
        OpenOptions options = OpenOptions.around(name.toString(), executor.shared(), Pool::new);
        pool = executor.memory().open(limit.map(options::limit).orElse(options));
        task = executor.arbiter().task(name.id(), 0);
        scope = pool.enter();
    }

    /// Opens the memory of the calling thread's task.
    static TaskMemory begin(ExecutorMemory executor, TaskContext context) {
        return new TaskMemory(executor, context);
    }

    /// Returns the memory of the task that the calling thread runs.
    ///
    /// @throws IllegalStateException if it runs none, or if the application has no [CisternPlugin]
    public static TaskMemory current() {
        return RunningTasks.current();
    }

    /// Returns the device memory of the executor.
    public DeviceMemory memory() {
        return executor.memory();
    }

    /// Returns the ordinal of the executor's device.
    public int device() {
        return executor.device();
    }

    /// Returns the pool that the task's blocks count in, also for other threads of the task.
    public Allocator pool() {
        return pool;
    }

    /// Returns the limit on what the task requests; empty if it may have all.
    public Optional<MemoryLimit> limit() {
        return limit;
    }

    /// Returns which task it is.
    public TaskName name() {
        return name;
    }

    /// Returns what the task waited for, rolled back and split.
    public TaskStatistics statistics() {
        return task.statistics();
    }

    /// Returns a stream that the task has to itself, which ends with it.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public synchronized CudaStream stream() {
        if (stream == null) {
            stream = CudaStream.open(memory(), device());
        }
        return stream;
    }

    /// Allocates memory that may leave the device for the host and for files while nobody uses it. It is closed
    /// at the task's end, if it was not before.
    ///
    /// @param byteSize at least 1
    /// @param priority the higher it is, the later it leaves
    /// @throws IllegalArgumentException if `byteSize` is less than 1
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory
    public SpillableBuffer spillable(long byteSize, int priority) {
        SpillableBuffer buffer =
                executor.spills().allocate(byteSize, device(), stream().handle(), priority);
        spillables.add(buffer);
        return buffer;
    }

    /// Takes host memory for copies, pinned where the executor's budget for that has room. It is closed at the
    /// task's end, if it was not before.
    ///
    /// @param byteSize at least 1
    public HostBlock hostBlock(long byteSize) {
        HostBlock block = executor.staging().take(byteSize);
        closeAtEnd(block);
        return block;
    }

    /// Closes a buffer of this task before the task's end.
    ///
    /// @throws IllegalStateException if it has open leases
    public void close(SpillableBuffer buffer) {
        buffer.close();
        spillables.remove(buffer);
    }

    /// Closes something at the task's end, before its memory is freed; what was added last comes first.
    public synchronized void closeAtEnd(AutoCloseable resource) {
        closedAtEnd.push(resource);
    }

    /// Calls code as a thread of this task, which may wait for memory of other tasks and
    /// [roll back][io.cistern.pressure.RetryOom].
    ///
    /// @return what the code returns
    /// @throws X what the code throws
    public <R, X extends Throwable> R call(ScopedValue.CallableOp<R, X> work) throws X {
        boolean before = inArbiter;
        inArbiter = true;
        try {
            return pool.call(ScopeOptions.all(), () -> task.<R, X>call(work));
        } finally {
            inArbiter = before;
        }
    }

    /// Runs work as a thread of this task, again for as long as memory is short, and with less at a time if need
    /// be: as [Retry#withRetry] does, and also where the task's own limit refuses.
    ///
    /// @param split makes an input into two parts or more, in order; one part or none if it can't be split
    /// @return the results of the parts, in order
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if a part that can't be split is refused for good
    /// @throws X what the body throws
    public <T, R, X extends Throwable> List<R> retry(
            T input, Function<? super T, ? extends List<? extends T>> split, Retry.Body<? super T, ? extends R, X> body)
            throws X {
        return call(() -> LimitRetry.<T, R, X>withRetry(input, split, body));
    }

    AllocatorStatistics figures() {
        return pool.statistics(device());
    }

    /// Wakes the task's thread if it was killed while it waits for memory of others, which Spark does not always.
    void wakeIfKilled() {
        if (inArbiter && context.isInterrupted()) {
            thread.interrupt();
        }
    }

    ExecutorMemory executor() {
        return executor;
    }

    Scope scope() {
        return scope;
    }

    Set<SpillableBuffer> spillables() {
        return spillables;
    }

    Deque<AutoCloseable> closedAtEnd() {
        return closedAtEnd;
    }

    synchronized @Nullable CudaStream openStream() {
        return stream;
    }

    /// The task.
    @Override
    public String toString() {
        return "TaskMemory[" + name + "]";
    }
}
