package io.cistern.cli.common;

import java.util.Locale;

/// What `--work` says: what is done with each block.
public enum Work {
    /// Nothing: the allocator's own cost.
    NONE,
    /// Each block is written once on its stream right after its allocation, as a kernel would.
    MEMSET,
    /// Each block is filled, and before its free its contents are verified; never timed.
    CHECK;

    /// As the command line names it.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
