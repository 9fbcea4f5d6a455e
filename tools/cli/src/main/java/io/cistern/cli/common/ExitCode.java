package io.cistern.cli.common;

/// What the program's end means to a script.
public final class ExitCode {
    /// All went well.
    public static final int OK = 0;
    /// Something that nobody foresaw.
    public static final int UNEXPECTED = 1;
    /// The command line or a trace is wrong.
    public static final int BAD_INPUT = 2;
    /// An allocation failed.
    public static final int ALLOCATION_FAILED = 3;
    /// A block's contents changed while it was live.
    public static final int CONTENTS_LOST = 4;
    /// `doctor --strict` found a problem.
    public static final int PROBLEM = 5;
    /// Whoever read the results read no further: what a program that a broken pipe ended would have, 128 and the
    /// signal's number.
    public static final int UNREAD = 141;

    private ExitCode() {}
}
