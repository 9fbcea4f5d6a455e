package io.cistern.caching;

import java.util.Locale;

/// How closely the pages of large blocks follow what is live. The finer they are, the less is reserved that
/// nobody asked for, and the more calls of the driver it takes until a program comes to rest.
public enum PageFit {
    /// Pages of 1/64 of the most that was ever live at once, from 8 MiB on, or 4 while that is little; of 1/128
    /// once pages [move][GrowthPolicy] much, since then what is left over in them is wanted elsewhere.
    USUAL(6, 7, 4L << 20, 8L << 20),
    /// Pages of 1/1024 of it, from 2 MiB on, and no slack unless it is given.
    TIGHT(10, 10, 2L << 20, 2L << 20);

    /// An eighth: a program that needs little memory is not given a page of which it uses a part.
    private static final int SHARE_OF_LITTLE = 3;

    private final int coarseShift;
    private final int fineShift;
    private final long leastBytes;
    private final long usualBytes;

    PageFit(int coarseShift, int fineShift, long leastBytes, long usualBytes) {
        this.usualBytes = usualBytes;
        this.coarseShift = coarseShift;
        this.fineShift = fineShift;
        this.leastBytes = leastBytes;
    }

    /// The size of a page, before it is rounded to what the source gives.
    ///
    /// @param peakBytes the most that was ever live at once
    /// @param moves whether pages move much
    long pageBytes(long peakBytes, boolean moves, long largestBytes) {
        long share = peakBytes >> (moves ? fineShift : coarseShift);
        long least = Math.clamp(peakBytes >> SHARE_OF_LITTLE, leastBytes, usualBytes);
        return Math.min(Math.max(share, least), largestBytes);
    }

    /// The smallest page that is made as such; what is cut to what is needed may be smaller.
    long leastBytes(long largestBytes) {
        return Math.min(leastBytes, largestBytes);
    }

    double usualSlack() {
        return this == TIGHT ? 0 : PagePolicy.USUAL_SLACK;
    }

    /// As it is written in a spec.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
