package io.cistern.diagnostics;

/// Says how much is recorded about live blocks, so that a leak report can name the code that allocated a
/// block.
///
/// [io.cistern.DeviceMemory.Builder#leakLevel] sets the level. Without it, the setting `cistern.leaks`
/// does, with a level's name in upper or lower case. At any level but `off`, blocks that are alive when
/// their allocator closes are logged, and those alive at the end of the process are written to standard
/// error. [io.cistern.DeviceMemory#leaks] returns the live blocks at any level and time.
///
/// **Cost** of an allocation and its free: none at `off`, next to none at `sampled`. At `sites` and `all`,
/// recording takes far longer than the two calls themselves, and creates garbage; at `all`, time and
/// garbage grow with the depth of the stack.
public enum LeakLevel {
    /// Nothing is recorded. Blocks are listed with size, device and allocator.
    OFF,

    /// For some blocks, stream, age and site are listed, too: for the first block of each thread, then for
    /// one block in every 64 MiB that the thread allocates. A block counts as at least 256 KiB, so this is
    /// every 256th small block and every block of 64 MiB.
    SAMPLED,

    /// Stream, age and site are listed for every block. The site is the innermost 8 frames of the program.
    /// A `DeviceBuffer` that was garbage-collected without having been closed is reported.
    SITES,

    /// The whole stack and the thread's name are listed, too.
    ALL
}
