package io.cistern.cuda;

import java.io.Serial;

/// Thrown when a driver call fails. The message names the function, its result and its arguments.
public final class CudaException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final DriverCall call;
    private final int code;

    /// Describes one failed call.
    ///
    /// @param call the function that failed
    /// @param code the `CUresult` it returned
    /// @param arguments its arguments as text, for example `device=0, byteSize=2097152`
    public CudaException(DriverCall call, int code, String arguments) {
        super(call.symbol() + "(" + arguments + ") failed: " + CudaResult.describe(code) + advice(CudaResult.of(code)));
        this.call = call;
        this.code = code;
    }

    /// Returns what to do about a call that failed because of a capture; empty for other results.
    private static String advice(CudaResult result) {
        return switch (result) {
            case STREAM_CAPTURE_UNSUPPORTED -> "; a capture forbids it: call it before or after the capture";
            case STREAM_CAPTURE_INVALIDATED ->
                "; a forbidden call has invalidated the capture: capture again without that call";
            case STREAM_CAPTURE_MERGE -> "; a stream can't wait for another capture: use one capture for both";
            case STREAM_CAPTURE_UNMATCHED -> "; end the capture on the stream on which it began";
            case STREAM_CAPTURE_UNJOINED ->
                "; before the capture ends, let its first stream wait for all its other streams";
            case STREAM_CAPTURE_ISOLATION ->
                "; a captured stream can't wait for work outside its capture: let it wait before the capture";
            case STREAM_CAPTURE_IMPLICIT ->
                "; the legacy default stream would wait for a captured stream: use a stream of your own";
            case CAPTURED_EVENT -> "; the event was recorded in a capture: use another event outside it";
            case STREAM_CAPTURE_WRONG_THREAD -> "; end the capture on the thread that began it";
            default -> "";
        };
    }

    /// Returns the function that failed.
    public DriverCall call() {
        return call;
    }

    /// Returns the raw `CUresult`.
    public int code() {
        return code;
    }

    /// Returns the result, or [CudaResult#UNKNOWN] if the code is unknown.
    public CudaResult result() {
        return CudaResult.of(code);
    }
}
