package io.cistern.cli.trace;

import java.io.Serial;

/// Says that a trace can't be read or makes no sense. The message is one line: `FILE:LINE: what`, or
/// `FILE: what` if no line is to blame.
public final class TraceException extends Exception {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Blames the file as a whole.
    public TraceException(String file, String what) {
        super(file + ": " + what);
    }

    /// Blames one line.
    ///
    /// @param line its number, from 1
    public TraceException(String file, long line, String what) {
        super(file + ":" + line + ": " + what);
    }
}
