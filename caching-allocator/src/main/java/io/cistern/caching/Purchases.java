package io.cistern.caching;

/// When new pages are made although others are idle.
///
/// 1. While less is reserved than was ever live at once, counting what is asked for now: that much is needed anyway.
/// 2. Above, idle pages are moved; but after every [#MOVES_A_PAGE] moves one page is bought, as skis are after they were
/// rented often enough, up to `1 + slack` times the peak of live bytes. So a workload that repeats comes to rest with few
/// moves.
///
/// Guarded by the lock of the [PageTable].
final class Purchases {
    /// A move costs two thirds of a new page, so buying earlier makes first passes faster; what it costs in memory
    /// stays small while moves are few.
    private static final long MOVES_A_PAGE = Integer.getInteger("K", 16);

    private final double slack;
    private long peakBytes;
    private long movedBytes;

    Purchases(double slack) {
        this.slack = slack;
    }

    /// So many bytes are live at once.
    void needed(long liveBytes) {
        peakBytes = Math.max(peakBytes, liveBytes);
    }

    /// Whether a page of a size is to be bought now.
    boolean buys(long reservedBytes, long byteSize) {
        return reservedBytes < peakBytes
                || (movedBytes >= MOVES_A_PAGE * byteSize && reservedBytes + byteSize <= peakBytes + (long) (peakBytes * slack));
    }

    void bought(long byteSize) {
        movedBytes = Math.max(0, movedBytes - MOVES_A_PAGE * byteSize);
    }

    void moved(long byteSize) {
        movedBytes += byteSize;
    }

    long peakBytes() {
        return peakBytes;
    }
}
