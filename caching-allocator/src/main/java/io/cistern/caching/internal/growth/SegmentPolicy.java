package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.SplitOptions;

/// How memory grows by plain segments.
///
/// @param alignment the unit of all addresses
/// @param blockUnit the unit of all block sizes
/// @param largeSegmentBytes the size of a segment that large blocks share
/// @param splitOptions which blocks are split
public record SegmentPolicy(long alignment, long blockUnit, long largeSegmentBytes, SplitOptions splitOptions) {
    boolean splits() {
        return splitOptions.splits();
    }
}
