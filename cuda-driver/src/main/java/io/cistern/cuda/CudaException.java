package io.cistern.cuda;

import java.io.Serial;

/// Thrown when a driver call fails; says which call, with what result, on which arguments.
public final class CudaException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final DriverCall call;
    private final int code;

    /// Describes one failed call.
    ///
    /// @param call the function that failed
    /// @param code the `CUresult` it returned
    /// @param arguments its arguments for people, for example `device=0, byteSize=2097152`
    public CudaException(DriverCall call, int code, String arguments) {
        super(call.symbol() + "(" + arguments + ") failed: " + CudaResult.describe(code));
        this.call = call;
        this.code = code;
    }

    /// Returns the function that failed.
    public DriverCall call() {
        return call;
    }

    /// Returns the raw `CUresult`.
    public int code() {
        return code;
    }

    /// Returns the result, or [CudaResult#UNKNOWN] for a code that this version does not name.
    public CudaResult result() {
        return CudaResult.of(code);
    }
}
