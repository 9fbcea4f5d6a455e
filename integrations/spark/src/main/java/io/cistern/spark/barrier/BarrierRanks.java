package io.cistern.spark.barrier;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.ReductionOp;
import io.cistern.spark.TaskMemory;
import java.util.Optional;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkException;

/// Gives a task its rank among the tasks of its barrier stage. The devices of these tasks exchange data
/// without a shuffle.
///
/// ```java
/// sales.toJavaRDD().barrier().mapPartitions(rows -> {
///     BarrierRanks ranks = BarrierRanks.join();
///     …
///     ranks.allReduce(gradients, DataType.FLOAT32, ReductionOp.SUM);
/// })
/// ```
///
/// On real devices, NCCL's [communicator][#communicator] connects them, with one device for each task.
/// Simulated devices can't reach other processes, so the bytes go through Spark's driver.
///
/// **Failures.** If one task of the stage fails or its executor dies, the others get an exception
/// within seconds, and so does a task that is killed. Spark retries the stage or fails its job; the
/// application goes on.
///
/// **Threads.** Only the task's own thread may call these methods.
public abstract sealed class BarrierRanks permits NcclRanks, ExchangedRanks {
    final BarrierTaskContext context;
    final TaskMemory memory;

    BarrierRanks(BarrierTaskContext context, TaskMemory memory) {
        this.context = context;
        this.memory = memory;
    }

    /// Joins the tasks of the calling thread's barrier stage. **Collective:** every task must call it the same
    /// number of times. The ranks end with the task.
    ///
    /// @throws IllegalStateException if the thread's task belongs to no barrier stage
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
        throw new IllegalStateException(
                "this thread is not running a task of a barrier stage: call rdd.barrier() first");
    }

    /// Exchanges texts between the tasks of the stage through Spark's driver.
    ///
    /// @return the texts of all tasks, by partition
    /// @throws BrokenStageException if a task is missing
    static String[] allGather(BarrierTaskContext context, String own) {
        try {
            return context.allGather(own);
        } catch (Exception failure) { // Spark's, which it does not declare
            if (failure instanceof SparkException || context.isInterrupted()) {
                throw new BrokenStageException(
                        "the tasks of stage " + context.stageId() + " did not all reach the exchange", failure);
            }
            throw failure;
        }
    }

    /// Returns this task's rank, which is its partition.
    public int rank() {
        return context.partitionId();
    }

    /// Returns the number of tasks in the stage.
    public int rankCount() {
        return context.getTaskInfos().length;
    }

    /// Returns NCCL's communicator, for its other operations; empty on simulated devices. [#await] waits for
    /// operations that are enqueued on the task's stream.
    public abstract Optional<Communicator> communicator();

    /// Reduces the elements of all ranks into each rank's buffer, and waits for the result.
    ///
    /// @param inPlace a buffer of the same size on all ranks
    /// @throws IllegalArgumentException if the buffer's size does not fit `type` or the other ranks
    /// @throws BrokenStageException if another task of the stage fails meanwhile, or this one is killed
    public abstract void allReduce(DeviceBuffer inPlace, DataType type, ReductionOp op);

    /// Copies the elements of one rank to each rank's buffer, and waits for the copy.
    ///
    /// @param inPlace a buffer of the same size on all ranks
    /// @param root the rank whose elements are copied
    /// @throws IllegalArgumentException if the buffer's size does not fit `type` or the other ranks,
    ///     or the stage has no such rank
    /// @throws BrokenStageException if another task of the stage fails meanwhile, or this one is killed
    public abstract void broadcast(DeviceBuffer inPlace, DataType type, int root);

    /// Waits until the task's stream has finished all its work.
    ///
    /// @throws BrokenStageException if another task of the stage fails meanwhile, or this one is killed
    public abstract void await();
}
