package io.cistern.cuda.nvrtc;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// A program that did not compile, with the log of the compiler.
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

    /// The `nvrtcResult`; 6 is an error in the program.
    public int code() {
        return code;
    }

    /// What the compiler said, line by line; empty if it did not get so far.
    public String log() {
        return log;
    }
}
