package io.cistern.caching.internal.base;

/// Which blocks are cut for smaller requests, as the options say.
///
/// @param splits whether any are
/// @param maxSplitBytes plain segments of this size and more are not, or 0 for the usual rule
/// @param maxNonSplitRoundingBytes how much larger than its request such a segment may be
public record SplitOptions(boolean splits, long maxSplitBytes, long maxNonSplitRoundingBytes) {
    /// From which size on blocks are oversize.
    public long oversizeBytes() {
        return maxSplitBytes == 0 ? Long.MAX_VALUE : maxSplitBytes;
    }

    /// How the blocks of plain segments are cut.
    ///
    /// @param deviceBytes the device's memory
    /// @param uncutKeptWhole without splits, blocks of this size and more serve no requests much smaller
    public SplitPolicy ofSegments(long deviceBytes, long uncutKeptWhole) {
        if (maxSplitBytes != 0 && splits) {
            return SplitPolicy.atMost(maxSplitBytes, maxNonSplitRoundingBytes);
        }
        return splits
                ? SplitPolicy.keeping(deviceBytes / 16)
                : SplitPolicy.none(Math.min(uncutKeptWhole, deviceBytes / 16));
    }
}
