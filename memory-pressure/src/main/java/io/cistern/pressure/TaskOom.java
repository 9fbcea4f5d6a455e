package io.cistern.pressure;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// An allocation of a [Task] was refused, and the task shall give something up for the others, or for itself.
/// Thrown by allocations through a [TaskArbiter] on the threads of tasks; [Retry] handles it.
///
/// No [io.cistern.errors.DeviceOutOfMemoryException]: code that answers that one in its own way can't help here.
public abstract sealed class TaskOom extends CisternException permits RetryOom, SplitAndRetryOom {
    @Serial
    private static final long serialVersionUID = 1L;

    private final transient TaskThread thread;
    private final long byteSize;
    private final int device;

    TaskOom(TaskThread thread, Refusal refusal, String whatToDo) {
        super("task " + thread.task.id() + " shall " + whatToDo + ": device " + refusal.device() + " has no "
                + refusal.byteSize() + " bytes for it");
        if (refusal.failure() != null) {
            initCause(refusal.failure());
        }
        this.thread = thread;
        this.byteSize = refusal.byteSize();
        this.device = refusal.device();
    }

    /// The task that shall do something.
    public Task task() {
        return thread.task;
    }

    /// Bytes that were asked for.
    public long byteSize() {
        return byteSize;
    }

    /// The device that has not got them.
    public int device() {
        return device;
    }

    TaskThread thread() {
        return thread;
    }
}
