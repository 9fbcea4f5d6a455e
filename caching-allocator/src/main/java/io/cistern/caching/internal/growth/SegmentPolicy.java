package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.SplitOptions;

/// How memory grows by plain segments.
///
/// @param alignment what all addresses are multiples of
/// @param blockUnit what all block sizes are multiples of
/// @param largeSegmentBytes the size of a segment that large blocks share
/// @param splitOptions which blocks are cut
public record SegmentPolicy(long alignment, long blockUnit, long largeSegmentBytes, SplitOptions splitOptions) {
    boolean splits() {
        return splitOptions.splits();
    }
}
