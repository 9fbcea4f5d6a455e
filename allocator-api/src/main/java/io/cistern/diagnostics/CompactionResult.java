package io.cistern.diagnostics;

/// The result of a compaction of live memory.
///
/// @param freedBytes bytes that went back to the driver
/// @param movedBytes bytes of live memory that were copied
/// @param pages pages that were replaced by smaller ones
/// @param nanos how long the compaction took, including the wait for the device, in nanoseconds of the
///     driver's clock
/// @param obstacle why nothing, or nothing more, was moved, in words; empty if nothing prevented it
public record CompactionResult(long freedBytes, long movedBytes, int pages, long nanos, String obstacle) {
    /// Returns a result for memory that stayed where it was.
    ///
    /// @param obstacle why the memory stayed
    public static CompactionResult nothing(String obstacle) {
        return new CompactionResult(0, 0, 0, 0, obstacle);
    }

    /// Returns the sum of this result and another, with this result's obstacle or, if it has none, the
    /// other's.
    public CompactionResult plus(CompactionResult more) {
        return new CompactionResult(
                freedBytes + more.freedBytes,
                movedBytes + more.movedBytes,
                pages + more.pages,
                nanos + more.nanos,
                obstacle.isEmpty() ? more.obstacle : obstacle);
    }

    @Override
    public String toString() {
        String moved = freedBytes + " bytes freed, " + movedBytes + " moved in " + pages + " pages";
        return obstacle.isEmpty() ? moved : moved + "; " + obstacle;
    }
}
