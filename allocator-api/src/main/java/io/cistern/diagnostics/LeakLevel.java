package io.cistern.diagnostics;

/// Says how much is recorded about live blocks, so that a report of a leak can name the place that allocated
/// it.
///
/// Set by [io.cistern.DeviceMemory.Builder#leakLevel], else by setting `cistern.leaks` with a level's name in
/// any case. At any level but `off`, blocks that are alive when their allocator closes are logged, and those
/// alive at the end of the process are written to standard error. [io.cistern.DeviceMemory#leaks] returns the
/// live blocks at any level and time.
///
/// **Cost** of an allocation and its free: none at `off`, hardly any at `sampled`. `sites` and `all` take far
/// longer than the two calls themselves, and create garbage; with `all`, both grow with the depth of the stack.
public enum LeakLevel {
    /// Nothing is recorded. Blocks are listed with size, device and allocator.
    OFF,

    /// For some blocks also stream, age and site: in each thread the first block, then one for every 64 MiB
    /// that it allocates. A block counts as at least 256 KiB, so this is every 256th small block and every
    /// block of 64 MiB.
    SAMPLED,

    /// For each block stream, age and site: the innermost 8 frames of the program. A `DeviceBuffer` that was
    /// dropped without being closed is reported.
    SITES,

    /// For each block also the whole stack and the thread's name.
    ALL
}
