package io.cistern.handles;

/// What a [HandlePool] counted on one device. Counts are read one after the other while threads go on, so
/// they need not be of one moment.
///
/// @param threads platform threads that had a handle
/// @param lifeSpans how long those of them lived that have ended
/// @param leases leases that were opened
/// @param abandonedLeases leases whose thread ended before it closed them; their handles came back
/// @param created handles that the library created
/// @param destroyed handles that were destroyed
/// @param reused how often a handle that nobody had was taken again
/// @param shared how often it had been another thread's
/// @param alive handles that exist
/// @param peak the most handles that existed at once
/// @param idle handles that no thread has
/// @param waits how often a call waited since the pool's limit was reached
/// @param waitNanos how long they waited in all, in nanoseconds
/// @param failedCreations how often the library did not create a handle
/// @param failedDestructions how often the library did not destroy one
/// @param lastFailure why, the last time; empty if nothing failed
/// @param workspaces workspaces of all handles
/// @param workspaceBytes their bytes
public record HandlePoolStatistics(
        long threads,
        LifeSpans lifeSpans,
        long leases,
        long abandonedLeases,
        long created,
        long destroyed,
        long reused,
        long shared,
        long alive,
        long peak,
        long idle,
        long waits,
        long waitNanos,
        long failedCreations,
        long failedDestructions,
        String lastFailure,
        long workspaces,
        long workspaceBytes) {}
