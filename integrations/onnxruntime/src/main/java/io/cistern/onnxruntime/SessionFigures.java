package io.cistern.onnxruntime;

/// Holds the figures of one session, or of all. While sessions allocate, the values may be
/// from slightly different moments.
///
/// @param usedBytes bytes requested for live blocks
/// @param peakBytes the highest value of `usedBytes`
/// @param liveBlocks live blocks
/// @param allocations blocks allocated so far, live or freed
/// @param withoutStream allocations among these that named no stream, such as those of weights
/// @param refused allocations that failed
public record SessionFigures(
        long usedBytes, long peakBytes, long liveBlocks, long allocations, long withoutStream, long refused) {}
