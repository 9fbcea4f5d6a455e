package io.cistern.caching.internal.base;

/// The options that say which blocks may be split for smaller requests.
///
/// @param splits whether any block is split
/// @param maxSplitBytes plain segments of this size and more are not split; 0 for the usual rule
/// @param maxNonSplitRoundingBytes how much larger than its request an unsplit segment may be
public record SplitOptions(boolean splits, long maxSplitBytes, long maxNonSplitRoundingBytes) {
    /// The size from which on blocks are oversize.
    public long oversizeBytes() {
        return maxSplitBytes == 0 ? Long.MAX_VALUE : maxSplitBytes;
    }

    /// Returns the split policy of plain segments.
    ///
    /// @param keptWhole blocks of this size and more serve no requests that are much smaller
    /// @param uncutKeptWhole the same if nothing is split
    public SplitPolicy ofSegments(long keptWhole, long uncutKeptWhole) {
        if (maxSplitBytes != 0 && splits) {
            return SplitPolicy.atMost(maxSplitBytes, maxNonSplitRoundingBytes);
        }
        return splits ? SplitPolicy.keeping(keptWhole) : SplitPolicy.none(uncutKeptWhole);
    }
}
