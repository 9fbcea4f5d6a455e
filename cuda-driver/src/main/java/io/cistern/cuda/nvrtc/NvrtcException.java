package io.cistern.cuda.nvrtc;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Thrown when a program does not compile, or another NVRTC call fails. Contains the compiler's log, if
/// there is one.
public final class NvrtcException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final int code;
    private final String log;

    NvrtcException(String call, String result, int code, String log) {
        super(call + " failed: " + result + " (" + code + ")" + (log.isEmpty() ? "" : "\n" + log));
        this.code = code;
        this.log = log;
    }

    /// Returns the `nvrtcResult`; 6 means an error in the program that was compiled.
    public int code() {
        return code;
    }

    /// Returns the compiler's messages, line by line; empty if the compilation did not begin.
    public String log() {
        return log;
    }
}
