package io.cistern.hazards;

/// Bytes that a call reads or writes: all from the first to the last, or rows at multiples of a pitch.
///
/// @param byteSize from the first byte to the last, with the gaps between rows
/// @param pitch from one row to the next
/// @param width bytes of each row
record Range(long from, long byteSize, boolean isWritten, long pitch, long width) {
    Range(long from, long byteSize, boolean isWritten) {
        this(from, byteSize, isWritten, byteSize, byteSize);
    }

    static Range rows(long from, long pitch, long width, long rows, boolean isWritten) {
        long byteSize = rows == 0 || width == 0 ? 0 : (rows - 1) * pitch + width;
        return rows < 2 || width == 0 || width >= pitch
                ? new Range(from, byteSize, isWritten)
                : new Range(from, byteSize, isWritten, pitch, width);
    }

    Range before(long address) {
        return address >= end() ? this : new Range(from, address - from, isWritten, pitch, width);
    }

    long end() {
        return from + byteSize;
    }

    private boolean hasGaps() {
        return width < pitch && width < byteSize;
    }

    private boolean overlaps(Range other) {
        if (from >= other.end() || other.from >= end()) {
            return false;
        }
        if (!hasGaps()) {
            return other.hasAny(from, end());
        }
        for (long row = from; row < end(); row += pitch) {
            if (other.hasAny(row, Math.min(end(), row + width))) {
                return true;
            }
        }
        return false;
    }

    private boolean hasAny(long first, long last) {
        long begin = Math.max(first, from);
        long inRow = hasGaps() ? (begin - from) % pitch : 0;
        long next = inRow < width ? begin : begin - inRow + pitch;
        return next < Math.min(last, end());
    }

    boolean covers(Range other) {
        if (from > other.from || other.end() > end()) {
            return false;
        }
        return !hasGaps()
                || ((other.pitch == pitch || !other.hasGaps()) && (other.from - from) % pitch + other.width <= width);
    }

    boolean conflictsWith(Range other) {
        return (isWritten || other.isWritten) && overlaps(other);
    }
}
