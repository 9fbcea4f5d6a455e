package io.cistern.spark;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.internal.names.Failures;
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

/// Gives a Spark task its device memory. From the task's start to its end, its thread is in a scope of the
/// task's own pool, so every allocation through [DeviceMemory] counts there. At the end, blocks that are still
/// live are freed and reported, even if the task failed or was killed.
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
/// **Sharing.** In [#call] and [#retry] the task shares its device with the executor's other tasks by the
/// rules of [io.cistern.pressure.TaskArbiter]: it may wait, roll back and split. Elsewhere an allocation fails
/// if memory is short.
///
/// **After the task** its blocks are gone, so do not close its buffers then.
///
/// **Threads.** The task's thread is in the scope. Other threads of the task enter it with [#call].
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

    /// Passes blocks through unchanged, so that they are counted as the task's.
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
    /// @throws IllegalStateException if the thread runs no task, or if the application has no [CisternPlugin]
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

    /// Returns the pool that counts the task's blocks. Other threads of the task may allocate from it, too.
    public Allocator pool() {
        return pool;
    }

    /// Returns the limit on the bytes that the task requests; empty if there is none.
    public Optional<MemoryLimit> limit() {
        return limit;
    }

    /// Returns the task's name.
    public TaskName name() {
        return name;
    }

    /// Returns how long the task waited, and how often it rolled back and split.
    public TaskStatistics statistics() {
        return task.statistics();
    }

    /// Returns the task's own stream, which is opened at the first call and closed at the task's end.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public synchronized CudaStream stream() {
        if (stream == null) {
            stream = CudaStream.open(memory(), device());
        }
        return stream;
    }

    /// Allocates a buffer that may be spilled to the host and to files while nobody uses it. The buffer
    /// is closed at the task's end at the latest.
    ///
    /// @param byteSize bytes, at least 1
    /// @param priority buffers of a higher priority are spilled later
    /// @throws IllegalArgumentException if `byteSize` is less than 1
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory
    public SpillableBuffer spillable(long byteSize, int priority) {
        SpillableBuffer buffer =
                executor.spills().allocate(byteSize, device(), stream().handle(), priority);
        spillables.add(buffer);
        return buffer;
    }

    /// Takes host memory for copies: pinned if the executor's budget has room, else pageable. The memory
    /// is given back at the task's end at the latest.
    ///
    /// @param byteSize bytes, at least 1
    public HostBlock hostBlock(long byteSize) {
        HostBlock block = executor.staging().take(byteSize);
        closeAtEnd(block);
        return block;
    }

    /// Closes a buffer of this task before the task's end.
    ///
    /// @throws IllegalStateException if the buffer has open leases
    public void close(SpillableBuffer buffer) {
        buffer.close();
        spillables.remove(buffer);
    }

    /// Closes a resource at the task's end, before the task's memory is freed. The resource that was added
    /// last is closed first.
    public synchronized void closeAtEnd(AutoCloseable resource) {
        closedAtEnd.push(resource);
    }

    /// Runs code as a thread of this task. The code may have to wait for other tasks' memory, or to
    /// [roll back][io.cistern.pressure.RetryOom].
    ///
    /// @return the code's result
    /// @throws X if the code throws it
    public <R, X extends Throwable> R call(ScopedValue.CallableOp<R, X> work) throws X {
        boolean before = inArbiter;
        inArbiter = true;
        try {
            return pool.call(ScopeOptions.all(), () -> task.<R, X>call(work));
        } finally {
            inArbiter = before;
        }
    }

    /// Runs work as a thread of this task. If memory is short, the work runs again, if necessary with parts
    /// of the input: see [Retry#withRetry]. If the task's own limit refuses an allocation, the input is
    /// split at once.
    ///
    /// @param split splits an input into two or more parts, in order; returns fewer if the input can't
    ///     be split
    /// @return the results of the parts, in order
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory for a part
    ///     that can't be split
    /// @throws X if the body throws it
    public <T, R, X extends Throwable> List<R> retry(
            T input, Function<? super T, ? extends List<? extends T>> split, Retry.Body<? super T, ? extends R, X> body)
            throws X {
        return call(() -> LimitRetry.<T, R, X>withRetry(input, split, body));
    }

    AllocatorStatistics figures() {
        return pool.statistics(device());
    }

    /// Wakes the task's thread if the task was killed while it waits for memory. Spark does not always wake it.
    void wakeIfKilled() {
        if (inArbiter && context.isInterrupted()) {
            thread.interrupt();
        }
    }

    /// Frees what the task has left, on its thread, even if some of that fails: closes its registered resources, then
    /// frees the blocks that are still live.
    ///
    /// @return the freed blocks
    List<LiveBlock> end(Failures failures) {
        failures.gather(executor::peaked); // before the pool closes, since its peak goes with it
        failures.gather(scope::close);
        closedAtEnd.forEach(each -> failures.gather(() -> close(each)));
        spillables.forEach(each -> failures.gather(each::close));
        List<LiveBlock> leaked = pool.liveBlocks();
        // After all work of the device, because the streams that use the blocks are unknown.
        leaked.forEach(block -> failures.gather(() -> memory().moduleSupport().freeBehindAll(block.address())));
        CudaStream opened = openStream();
        if (opened != null) {
            failures.gather(opened::close);
        }
        failures.gather(pool::close);
        return leaked;
    }

    private static void close(AutoCloseable resource) {
        try {
            resource.close();
        } catch (RuntimeException failure) {
            throw failure;
        } catch (Exception failure) {
            throw new IllegalStateException("closing " + resource + " failed", failure);
        }
    }

    private synchronized @Nullable CudaStream openStream() {
        return stream;
    }

    /// Returns the task's name.
    @Override
    public String toString() {
        return "TaskMemory[" + name + "]";
    }
}
