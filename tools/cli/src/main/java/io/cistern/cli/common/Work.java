package io.cistern.cli.common;

import java.util.Locale;

/// The values of `--work`: what a replay does with each block.
public enum Work {
    /// Nothing is done, which shows the allocator's own cost.
    NONE,
    /// Each block is written once on its stream right after its allocation, as a kernel would.
    MEMSET,
    /// Each block is filled, and its contents are verified before its free; this is never timed.
    CHECK;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
