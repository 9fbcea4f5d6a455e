package io.cistern.onnxruntime;

/// Figures of one session, or of all. Read while allocations go on, the parts may be of slightly different
/// moments.
///
/// @param usedBytes requested bytes of live blocks
/// @param peakBytes the most that `usedBytes` has been
/// @param liveBlocks blocks that are alive
/// @param allocations blocks so far, the live ones and those that were freed
/// @param withoutStream how many of `allocations` named no stream, as those of weights do
/// @param refused allocations that failed
public record SessionFigures(
        long usedBytes, long peakBytes, long liveBlocks, long allocations, long withoutStream, long refused) {}
