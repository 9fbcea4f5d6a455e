package io.cistern.spark.barrier;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.ReductionOp;
import io.cistern.spark.TaskMemory;
import java.util.Optional;
import org.apache.spark.BarrierTaskContext;

/// This task's rank among the tasks of its barrier stage, whose devices move data between them without a shuffle.
///
/// ```java
/// sales.toJavaRDD().barrier().mapPartitions(rows -> {
///     BarrierRanks ranks = BarrierRanks.join();
///     …
///     ranks.allReduce(gradients, DataType.FLOAT32, ReductionOp.SUM);
/// })
/// ```
///
/// On real devices it is NCCL's [communicator][#communicator], with one device for each task. On simulated ones, which
/// know nothing of other processes, the bytes go through Spark's driver.
///
/// **Failures.** When one task of the stage fails or its executor dies, the others get an exception within seconds,
/// and Spark tries the stage again or ends its job; the application goes on. So does a task that was killed.
///
/// **Threads.** The task's own.
public abstract sealed class BarrierRanks permits NcclRanks, ExchangedRanks {
    final BarrierTaskContext context;
    final TaskMemory memory;

    BarrierRanks(BarrierTaskContext context, TaskMemory memory) {
        this.context = context;
        this.memory = memory;
    }

    /// Joins the tasks of the calling thread's barrier stage: **collective**, each task calls it as often as the
    /// others.
    /// It ends with the task.
    ///
    /// @throws IllegalStateException if the thread's task is in no barrier stage
    /// @throws io.cistern.nccl.NcclException if NCCL refuses
    /// @throws io.cistern.errors.ConfigurationException if the device is real and there is no NCCL
    /// @throws BrokenStageException if another task of the stage fails meanwhile, or this one is killed
    public static BarrierRanks join() {
        BarrierTaskContext context = requireBarrier();
        TaskMemory memory = TaskMemory.current();
        return memory.memory().driver().simulated()
                ? new ExchangedRanks(context, memory)
                : NcclRanks.join(context, memory);
    }

    private static BarrierTaskContext requireBarrier() {
        if (org.apache.spark.TaskContext.get() instanceof BarrierTaskContext) {
            return BarrierTaskContext.get();
        }
        throw new IllegalStateException("this thread runs no task of a barrier stage: call rdd.barrier() first");
    }

    /// Returns this task's rank: its partition.
    public int rank() {
        return context.partitionId();
    }

    /// Returns how many tasks the stage has.
    public int rankCount() {
        return context.getTaskInfos().length;
    }

    /// Returns NCCL's communicator, for all that it can do; empty on simulated devices. What is enqueued there is
    /// waited for by [#await].
    public abstract Optional<Communicator> communicator();

    /// Gives each rank's buffer the elements of all ranks, reduced to one, and waits for it.
    ///
    /// @param inPlace of the same size on all ranks
    /// @throws IllegalArgumentException if the buffer does not fit
    /// @throws BrokenStageException if another task of the stage fails meanwhile, or this one is killed
    public abstract void allReduce(DeviceBuffer inPlace, DataType type, ReductionOp op);

    /// Gives each rank's buffer the elements of one rank, and waits for it.
    ///
    /// @param inPlace of the same size on all ranks
    /// @param root the rank whose elements they are
    /// @throws IllegalArgumentException if the buffer does not fit
    /// @throws BrokenStageException if another task of the stage fails meanwhile, or this one is killed
    public abstract void broadcast(DeviceBuffer inPlace, DataType type, int root);

    /// Waits until the task's stream has done what it was given.
    ///
    /// @throws BrokenStageException if another task of the stage fails meanwhile, or this one is killed
    public abstract void await();
}
