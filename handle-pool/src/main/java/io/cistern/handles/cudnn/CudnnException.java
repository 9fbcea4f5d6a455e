package io.cistern.handles.cudnn;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Reports a failed call of cuDNN: the function, its status and its arguments.
public final class CudnnException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final String call;
    private final int status;

    CudnnException(String call, int status, String statusName, String arguments) {
        super(call + "(" + arguments + ") failed: " + statusName + " (" + status + ")");
        this.call = call;
        this.status = status;
    }

    /// Returns the function that failed.
    public String call() {
        return call;
    }

    /// Returns the `cudnnStatus_t`.
    public int status() {
        return status;
    }
}
