package io.cistern.cli.common;

import java.io.Serial;

/// Says that a file on the command line can't be read or makes no sense. The message is one line:
/// `FILE:LINE: what`, or `FILE: what` if the file has no lines or none is to blame.
public final class InputException extends Exception {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Blames the file as a whole, or the place that the text names.
    public InputException(String file, String what) {
        super(oneLine(file + ": " + what));
    }

    /// Blames one line.
    ///
    /// @param line its number, from 1
    public InputException(String file, long line, String what) {
        super(oneLine(file + ":" + line + ": " + what));
    }

    /// A message may quote the file, which may hold anything.
    private static String oneLine(String message) {
        return message.replaceAll("\\p{Cntrl}", "?");
    }
}
