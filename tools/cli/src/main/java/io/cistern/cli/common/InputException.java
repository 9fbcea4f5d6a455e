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

    /// Returns a text without control characters, which the name of a file may have, and what a message quotes.
    public static String oneLine(String text) {
        return text.chars().anyMatch(Character::isISOControl) ? text.replaceAll("[\\p{Cntrl}\\x80-\\x9f]", "?") : text;
    }
}
