package io.cistern.nccl;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// A call of NCCL that did not succeed: which call, with what result, on which arguments, and what NCCL itself says
/// of it.
public final class NcclException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final String call;
    private final int code;
    private final String lastError;

    /// Describes one failed call.
    ///
    /// @param call the function that failed
    /// @param code the `ncclResult_t` it returned
    /// @param arguments its arguments for people
    /// @param lastError what `ncclGetLastError` said then; may be empty
    public NcclException(String call, int code, String arguments, String lastError) {
        super(call + "(" + arguments + ") failed: " + NcclResult.describe(code)
                + (lastError.isBlank() ? "" : "; NCCL says: " + lastError.strip()));
        this.call = call;
        this.code = code;
        this.lastError = lastError;
    }

    /// The function that failed.
    public String call() {
        return call;
    }

    /// The raw `ncclResult_t`.
    public int code() {
        return code;
    }

    /// The result, or [NcclResult#UNKNOWN] for a code that this version does not name.
    public NcclResult result() {
        return NcclResult.of(code);
    }

    /// What `ncclGetLastError` said; empty if nothing.
    public String lastError() {
        return lastError;
    }
}
