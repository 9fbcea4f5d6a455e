package io.cistern.cli.common;

/// The exit codes of the program, for scripts.
public final class ExitCode {
    /// All went well.
    public static final int OK = 0;
    /// Something unforeseen happened.
    public static final int UNEXPECTED = 1;
    /// The command line or a trace is wrong.
    public static final int BAD_INPUT = 2;
    /// An allocation failed, through an allocator that the command was asked about.
    public static final int ALLOCATION_FAILED = 3;
    /// A block's contents changed while it was live.
    public static final int CONTENTS_LOST = 4;
    /// `doctor --strict` found a problem.
    public static final int PROBLEM = 5;
    /// The reader of the results closed the pipe. The number is 128 plus the signal's number, as if the broken
    /// pipe had ended the program.
    public static final int UNREAD = 141;

    private ExitCode() {}
}
