package io.cistern.caching.options;

import java.util.Locale;

/// How much the caching allocator checks; set by option `check`, else by property `cistern.check`. Each level
/// includes the levels before it. At `off`, an allocation runs no code of the checks.
public enum CheckLevel {
    /// Makes no checks beyond the framework's own: the address of a free must be that of a live block.
    OFF,

    /// Remembers the code that allocated each block and, for a while after its free, the code that freed
    /// it. An error names both. This level finds a double free, an address inside a block or in no block, a
    /// wrong size, a wrong device, and a stream that was destroyed without being
    /// [announced][io.cistern.DeviceMemory#streamClosing]. Each allocation and free walks the stack.
    CHECKED,

    /// Checks all invariants after every call, in time that grows with the number of blocks. Fills freed
    /// memory with a pattern, and verifies it before the memory is allocated again. Fills 256 bytes after
    /// each block, too, and verifies them when the block is freed. Calls run one at a time. An allocation
    /// waits for its stream's work, and a free for all work of the device.
    PARANOID;

    /// Returns the level as a spec has it: in lower case.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
