package io.cistern.caching;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// How closely the pages of large blocks follow what is live. The finer they are, the less is reserved that nobody
/// asked for, and the more calls of the driver it takes until a program comes to rest.
public enum PageFit {
    /// Pages of 1/128 of the most that was ever live at once, from 4 MiB on; of 1/64 while one stream has all of
    /// it, since what is left over in pages is left over once a stream.
    USUAL(6, 7, 4L << 20),
    /// Pages of 1/512 of it, from 2 MiB on, and no slack unless it is given.
    TIGHT(9, 9, 2L << 20);

    /// The names as they are written.
    static final List<String> NAMES =
            Arrays.stream(values()).map(PageFit::toString).toList();

    private final int shiftOfOneStream;
    private final int shiftOfMany;
    private final long leastBytes;

    PageFit(int shiftOfOneStream, int shiftOfMany, long leastBytes) {
        this.shiftOfOneStream = shiftOfOneStream;
        this.shiftOfMany = shiftOfMany;
        this.leastBytes = leastBytes;
    }

    /// The size of a page, before it is rounded to what the source gives.
    ///
    /// @param streams how many streams share the memory, at least 1
    long pageBytes(long peakBytes, int streams, long largestBytes) {
        int shift = streams == 1 ? shiftOfOneStream : shiftOfMany;
        return Math.clamp(peakBytes >> shift, leastBytes(largestBytes), largestBytes);
    }

    /// The smallest page that is made as such; what is cut to what is needed may be smaller.
    long leastBytes(long largestBytes) {
        return Math.min(leastBytes, largestBytes);
    }

    double usualSlack() {
        return this == TIGHT ? 0 : PagePolicy.USUAL_SLACK;
    }

    static PageFit named(String name) {
        return valueOf(name.toUpperCase(Locale.ROOT));
    }

    /// As it is written in a spec.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
