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

    private ExitCode() {}
}
