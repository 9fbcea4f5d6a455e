package io.cistern.spark;

import io.cistern.CudaStream;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.internal.names.Failures;
import java.util.List;

/// Frees the memory that a task has left, on the task's thread, and goes on after failures.
final class TaskEnd {
    private final TaskMemory task;
    private final Failures failures = new Failures();

    TaskEnd(TaskMemory task) {
        this.task = task;
    }

    /// Closes the task's registered resources, then frees the blocks that are still live.
    ///
    /// @return the freed blocks
    List<LiveBlock> free() {
        failures.gather(task::peaked);
        failures.gather(task.scope()::close);
        task.closedAtEnd().forEach(each -> failures.gather(() -> close(each)));
        task.spillables().forEach(each -> failures.gather(each::close));
        List<LiveBlock> leaked = task.pool().leaks();
        leaked.forEach(block -> failures.gather(() -> free(block)));
        CudaStream stream = task.openStream();
        if (stream != null) {
            failures.gather(stream::close);
        }
        failures.gather(task.pool()::close);
        return leaked;
    }

    /// @throws RuntimeException the first failure, with the others suppressed in it
    void rethrow() {
        failures.rethrow();
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

    /// Frees a block after all work of its device, because the streams that use it are unknown.
    private void free(LiveBlock block) {
        task.memory().moduleSupport().freeBehindAll(block.address());
    }
}
