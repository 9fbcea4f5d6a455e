package io.cistern.caching.options;

import java.util.Locale;

/// How much the caching allocator checks; set by option `check`, else by property `cistern.check`. Each level
/// includes the levels before it. At `off`, an allocation runs no code of the checks.
public enum CheckLevel {
    /// Checks only what every allocator checks: the address of a free must be that of a live block.
    OFF,

    /// Remembers the code that allocated each block and, for a while after its free, the code that freed it. An
    /// error names both places. Errors are: a double free, an address inside a block or in no block, a wrong
    /// size, a wrong device, and a stream that was destroyed without being
    /// [announced][io.cistern.DeviceMemory#streamClosing]. Each allocation and free walks the stack.
    CHECKED,

    /// After every call all invariants are checked, in time that grows with the number of blocks. Freed memory
    /// is filled with a pattern, which is verified before the memory is allocated again. 256 bytes after each
    /// block are filled too, and verified when the block is freed. Calls take turns. An allocation waits for
    /// the stream, a free for the device.
    PARANOID;

    /// Returns the level as a spec has it: in lower case.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
