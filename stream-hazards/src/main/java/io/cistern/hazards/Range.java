package io.cistern.hazards;

/// Bytes that a call reads or writes.
record Range(long from, long byteSize, boolean isWritten) {
    long end() {
        return from + byteSize;
    }

    boolean overlaps(Range other) {
        return from < other.end() && other.from < end();
    }

    boolean covers(Range other) {
        return from <= other.from && other.end() <= end();
    }

    boolean conflictsWith(Range other) {
        return (isWritten || other.isWritten) && overlaps(other);
    }
}
