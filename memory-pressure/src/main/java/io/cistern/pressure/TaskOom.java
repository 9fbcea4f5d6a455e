package io.cistern.pressure;

import io.cistern.cuda.CisternException;
import io.cistern.cuda.settings.ByteSizes;
import java.io.Serial;

/// Thrown if an allocation of a [Task] is refused and the task has to free memory, so that other tasks can
/// go on, or it can go on itself with a smaller input. Allocations through a [TaskArbiter] throw it on the
/// threads of tasks; [Retry] handles it.
///
/// It is not a [io.cistern.errors.DeviceOutOfMemoryException], because a handler of that exception would
/// not do what the arbiter asks for.
public abstract sealed class TaskOom extends CisternException permits RetryOom, SplitAndRetryOom {
    @Serial
    private static final long serialVersionUID = 1L;

    private final transient TaskThread thread;
    private final long byteSize;
    private final int device;

    TaskOom(TaskThread thread, Refusal refusal, String whatToDo, String why) {
        super("task " + thread.task.id() + " must " + whatToDo + ": device " + refusal.device() + " has no room for "
                + ByteSizes.count(refusal.byteSize()) + why);
        if (refusal.failure() != null) {
            initCause(refusal.failure());
        }
        this.thread = thread;
        this.byteSize = refusal.byteSize();
        this.device = refusal.device();
    }

    /// Returns the task that has to free memory.
    public Task task() {
        return thread.task;
    }

    /// Returns the number of bytes requested.
    public long byteSize() {
        return byteSize;
    }

    /// Returns the ordinal of the device that has too little memory.
    public int device() {
        return device;
    }

    TaskThread thread() {
        return thread;
    }
}
