package io.cistern.diagnostics;

/// Determines how much is recorded about live blocks, so that a leak report can name the code that
/// allocated a block.
///
/// [io.cistern.DeviceMemory.Builder#leakLevel] sets the level. Without that call, the setting
/// `cistern.leaks` does, with a level's name in upper or lower case. At any level but `off`, blocks that
/// are alive when their allocator closes are logged, and those alive at the end of the process are written
/// to standard error. [io.cistern.DeviceMemory#liveBlocks] returns the live blocks at any level and time.
///
/// **Cost.** At `off`, an allocation and its free cost nothing extra; at `sampled`, next to nothing. At
/// `sites` and `all`, recording takes far longer than the two calls themselves, and creates garbage; at
/// `all`, time and garbage grow with the depth of the stack.
public enum LeakLevel {
    /// Nothing is recorded. Live blocks are listed only with their size, device and allocator.
    OFF,

    /// Stream, age and site are also listed for some blocks: for the first block of each thread, then for
    /// one block in every 64 MiB that the thread allocates. A block counts as at least 256 KiB, so this is
    /// every 256th small block and every block of 64 MiB.
    SAMPLED,

    /// Stream, age and site are listed for every block. The site is the innermost 8 frames of the program.
    /// A `DeviceBuffer` that is garbage-collected without having been closed is reported.
    SITES,

    /// The whole stack and the thread's name are listed, too.
    ALL
}
