package io.cistern.spark.barrier;

import io.cistern.nccl.Communicator;
import io.cistern.nccl.NcclException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.BarrierTaskContext;
import org.jspecify.annotations.Nullable;

/// Aborts a communicator when its task was killed or NCCL has noticed a failure. NCCL's calls do not return by
/// themselves if a member is gone: neither the wait for a collective, nor the first call, which connects to the other
/// members. So a thread of its own watches, until [#close].
///
/// **Threads.** Any.
final class StageWatch implements AutoCloseable {
    private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private final BarrierTaskContext context;
    private final Communicator communicator;
    private final Thread task = Thread.currentThread();
    private final Thread thread;
    private volatile @Nullable BrokenStageException broken;
    private volatile boolean closed;

    private StageWatch(BarrierTaskContext context, Communicator communicator) {
        this.context = context;
        this.communicator = communicator;
        this.thread = Thread.ofPlatform().daemon().name("cistern-nccl-watch").unstarted(this::watch);
    }

    /// Watches from now on, for the task of the calling thread.
    static StageWatch start(BarrierTaskContext context, Communicator communicator) {
        StageWatch watch = new StageWatch(context, communicator);
        watch.thread.start();
        return watch;
    }

    private void watch() {
        while (!closed && broken == null) {
            look();
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    /// Aborts the communicator if the stage is broken now.
    void look() {
        if (context.isInterrupted() || task.isInterrupted()) {
            abort("the task was killed in a collective", null);
            return;
        }
        try {
            communicator.checkAsync();
        } catch (NcclException noticed) {
            abort("a member of the stage is gone", noticed);
        }
    }

    private void abort(String why, @Nullable NcclException cause) {
        BrokenStageException found = new BrokenStageException(why, cause);
        broken = found;
        try {
            communicator.abort();
        } catch (RuntimeException refused) {
            found.addSuppressed(refused);
        }
    }

    /// Does nothing while the stage is whole.
    ///
    /// @throws BrokenStageException once the task was killed or a member is gone
    void requireWhole() {
        BrokenStageException found = broken;
        if (found != null) {
            throw new BrokenStageException(String.valueOf(found.getMessage()), found);
        }
    }

    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
    }
}
