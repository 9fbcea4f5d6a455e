package io.cistern.nccl;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Reports a failed call of NCCL: the function, its result, its arguments, and NCCL's own text.
public final class NcclException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final String call;
    private final int code;
    private final String lastError;

    /// Creates an exception that reports one failed call.
    ///
    /// @param call the function that failed
    /// @param code the `ncclResult_t` that it returned
    /// @param arguments its arguments as text
    /// @param lastError the text of `ncclGetLastError`; may be empty
    public NcclException(String call, int code, String arguments, String lastError) {
        super(call + "(" + arguments + ") failed: " + NcclResult.describe(code)
                + (lastError.isBlank() ? "" : "; NCCL says: " + lastError.strip()));
        this.call = call;
        this.code = code;
        this.lastError = lastError;
    }

    /// Returns the name of the function that failed.
    public String call() {
        return call;
    }

    /// Returns the raw `ncclResult_t`.
    public int code() {
        return code;
    }

    /// Returns the result, or [NcclResult#UNKNOWN] for a code that this version of Cistern does not
    /// know.
    public NcclResult result() {
        return NcclResult.of(code);
    }

    /// Returns the text of `ncclGetLastError`; may be empty.
    public String lastError() {
        return lastError;
    }
}
