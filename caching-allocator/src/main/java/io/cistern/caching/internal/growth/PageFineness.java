package io.cistern.caching.internal.growth;

import io.cistern.caching.options.PageFit;

/// How fine the pages of large blocks are, as shares of the most that was ever live at once.
///
/// @param coarseShift the share, a power of two, while pages hardly move
/// @param fineShift the share once they move much
/// @param smallestBytes the smallest page that is made as such; what is cut to what is needed may be smaller
/// @param usualBytes the smallest page unless little is live
record PageFineness(int coarseShift, int fineShift, long smallestBytes, long usualBytes) {
    private static final PageFineness USUAL = new PageFineness(6, 7, 4L << 20, 8L << 20);
    private static final PageFineness TIGHT = new PageFineness(10, 10, 2L << 20, 2L << 20);

    /// An eighth: a program that needs little memory is not given a page of which it uses a part.
    private static final int SHARE_OF_LITTLE = 3;

    static PageFineness of(PageFit fit) {
        return fit == PageFit.TIGHT ? TIGHT : USUAL;
    }

    /// The size of a page, before it is rounded to what the source gives.
    ///
    /// @param peakBytes the most that was ever live at once
    /// @param moves whether pages move much
    long pageBytes(long peakBytes, boolean moves, long largestBytes) {
        long share = peakBytes >> (moves ? fineShift : coarseShift);
        long least = Math.clamp(peakBytes >> SHARE_OF_LITTLE, smallestBytes, usualBytes);
        return Math.min(Math.max(share, least), largestBytes);
    }

    /// The smallest page that is made as such.
    long leastBytes(long largestBytes) {
        return Math.min(smallestBytes, largestBytes);
    }
}
