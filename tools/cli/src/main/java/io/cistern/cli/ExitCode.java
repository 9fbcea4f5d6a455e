package io.cistern.cli;

/// What the program's end means to a script.
final class ExitCode {
    /// All went well.
    static final int OK = 0;
    /// Something that nobody foresaw.
    static final int UNEXPECTED = 1;
    /// The command line or a trace is wrong.
    static final int BAD_INPUT = 2;
    /// An allocation failed.
    static final int ALLOCATION_FAILED = 3;
    /// A block's contents changed while it was live.
    static final int CONTENTS_LOST = 4;
    /// `doctor --strict` found a problem.
    static final int PROBLEM = 5;
    /// Whoever read the results read no further: what a program that a broken pipe ended would have, 128 and the
    /// signal's number.
    static final int UNREAD = 141;

    private ExitCode() {}
}
