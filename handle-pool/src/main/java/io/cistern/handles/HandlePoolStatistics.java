package io.cistern.handles;

/// The statistics of a [HandlePool] on one device. The counts are read one by one while threads run, so
/// they may be from slightly different moments.
///
/// @param threads the platform threads that have taken a handle so far
/// @param leases the leases that were opened
/// @param abandonedLeases the threads that ended while they had leases open; the pool reclaimed their
///     handles
/// @param created the handles that the library created
/// @param destroyed the handles that were destroyed
/// @param reused how often a thread took an idle handle
/// @param alive the handles that exist
/// @param peak the most handles that existed at once
/// @param idle the handles that no thread has
/// @param waits how often a call waited because `maxHandles` or `maxVirtualThreads` was reached
/// @param waitNanos the sum of those waits, in nanoseconds
/// @param failedCreations how often the library failed to create a handle
/// @param failedDestructions how often the library failed to destroy a handle
/// @param lastFailure the last failure of the library; empty if there was none
/// @param workspaceBytes the bytes of the workspaces of all handles
public record HandlePoolStatistics(
        long threads,
        long leases,
        long abandonedLeases,
        long created,
        long destroyed,
        long reused,
        long alive,
        long peak,
        long idle,
        long waits,
        long waitNanos,
        long failedCreations,
        long failedDestructions,
        String lastFailure,
        long workspaceBytes) {}
