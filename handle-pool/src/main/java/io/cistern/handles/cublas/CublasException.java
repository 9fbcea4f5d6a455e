package io.cistern.handles.cublas;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Reports a failed call of cuBLAS or cuBLASLt: the function, its status, its arguments and, if known, what to
/// do about it.
public final class CublasException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final String call;
    private final int status;
    private final String statusName;

    CublasException(String call, int status, String statusName, String arguments) {
        super(call + "(" + arguments + ") failed: " + statusName + " (" + status + ")" + whatToDo(status));
        this.call = call;
        this.status = status;
        this.statusName = statusName;
    }

    /// Returns the function that failed.
    public String call() {
        return call;
    }

    /// Returns the `cublasStatus_t`.
    public int status() {
        return status;
    }

    /// Returns the name of the status, for example `CUBLAS_STATUS_NOT_SUPPORTED`.
    public String statusName() {
        return statusName;
    }

    private static String whatToDo(int status) {
        return switch (status) {
            case 1 ->
                "; the GPU can't be used, or has no memory left for the library: free some with DeviceMemory.trim";
            case 3 -> "; the library's own memory does not fit: free some with DeviceMemory.trim";
            case 7 -> "; a size, a leading dimension or an alignment is not allowed for these elements";
            case 8 -> "; this GPU can't multiply these elements: take FLOAT32";
            case 13 -> "; a kernel failed, perhaps an earlier one: compute-sanitizer finds which";
            case 15 ->
                "; the library has no kernel for this: other elements, leading dimensions and addresses that are"
                        + " multiples of 16 bytes, or another epilogue may do";
            default -> "";
        };
    }
}
