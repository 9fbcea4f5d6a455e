package io.cistern.spark.barrier;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.Nccl;
import io.cistern.nccl.NcclException;
import io.cistern.nccl.ReductionOp;
import io.cistern.nccl.UniqueId;
import io.cistern.spark.TaskMemory;
import java.util.Base64;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.apache.spark.BarrierTaskContext;

/// Runs collectives with NCCL. A [StageWatch] ends their calls and waits if a member is gone.
final class NcclRanks extends BarrierRanks {
    private static final long POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(200);
    private static final long JOIN_POLL_MILLIS = 50;

    private final Communicator communicator;
    private final StageWatch watch;

    private NcclRanks(BarrierTaskContext context, TaskMemory memory, Communicator communicator) {
        super(context, memory);
        this.communicator = communicator;
        this.watch = StageWatch.start(context, communicator);
    }

    /// Joins the ranks: rank 0 creates the id, and Spark passes it to all.
    static NcclRanks join(BarrierTaskContext context, TaskMemory memory) {
        Nccl nccl = Nccl.of(memory.memory());
        String own = context.partitionId() == 0
                ? Base64.getEncoder().encodeToString(nccl.uniqueId().toBytes())
                : "";
        UniqueId id = UniqueId.of(Base64.getDecoder().decode(allGather(context, own)[0]));
        int ranks = context.getTaskInfos().length;
        NcclRanks joined = new NcclRanks(
                context,
                memory,
                opened(context, () -> nccl.initRank(id, ranks, context.partitionId(), memory.device())));
        memory.closeAtEnd(joined::end);
        return joined;
    }

    /// Opens the communicator on a thread of its own, which is abandoned if a member never comes.
    private static Communicator opened(BarrierTaskContext context, Supplier<Communicator> opening) {
        CompletableFuture<Communicator> made = new CompletableFuture<>();
        Thread.ofPlatform().daemon().name("cistern-nccl-join").start(() -> {
            try {
                Communicator opened = opening.get();
                if (!made.complete(opened)) {
                    opened.abort();
                }
            } catch (Throwable failure) {
                made.completeExceptionally(failure);
            }
        });
        while (true) {
            try {
                return made.get(JOIN_POLL_MILLIS, TimeUnit.MILLISECONDS);
            } catch (TimeoutException _) {
                if (context.isInterrupted() && made.cancel(false)) {
                    throw new BrokenStageException("the task was killed while it joined the ranks of its stage", null);
                }
            } catch (InterruptedException interrupted) {
                made.cancel(false);
                throw new BrokenStageException(
                        "the task was interrupted while it joined the ranks of its stage", interrupted);
            } catch (ExecutionException failed) {
                throw new BrokenStageException("the ranks of the stage could not connect", failed.getCause());
            }
        }
    }

    @Override
    public Optional<Communicator> communicator() {
        return Optional.of(communicator);
    }

    @Override
    public void allReduce(DeviceBuffer inPlace, DataType type, ReductionOp op) {
        run(() -> communicator.allReduce(inPlace, type, op, memory.stream().handle()));
    }

    @Override
    public void broadcast(DeviceBuffer inPlace, DataType type, int root) {
        run(() -> communicator.broadcast(inPlace, type, root, memory.stream().handle()));
    }

    private void run(Runnable collective) {
        try {
            collective.run();
        } catch (NcclException | IllegalStateException failure) {
            watch.look(); // NCCL's error alone does not say that the stage is broken
            watch.requireWhole();
            throw failure;
        }
        await();
    }

    @Override
    public void await() {
        while (!memory.stream().isIdle()) {
            watch.requireWhole();
            LockSupport.parkNanos(POLL_NANOS);
        }
        watch.requireWhole();
    }

    /// Closes the communicator, or aborts it if the task failed or was killed: such a task waits for no other.
    private void end() {
        watch.close();
        if (context.isFailed() || context.isInterrupted()) {
            communicator.abort();
        } else {
            communicator.close();
        }
    }
}
