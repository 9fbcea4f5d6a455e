package io.cistern.caching.internal.growth;

/// When new pages are made although others are idle.
///
/// 1. While less is reserved than was ever live at once, counting what is asked for now: that much is needed
/// anyway. And while little is reserved, for so long streams need not wait for each other, nor places search.
/// 2. Above, idle pages are moved; but moves *earn* pages, as skis are bought after they were rented often
/// enough: one for each [#MOVES_A_PAGE] moves of its size inside a stream, and one for each between streams, up
/// to `1 + slack` times the peak of live bytes.
/// 3. Small blocks have a share for themselves, which they need not earn and large ones do not take from. Which
/// of them threads keep differs from one time to the next; so else a program that repeats would not come to rest,
/// and in one that uses hardly any memory, a page would go back and forth between small and large blocks.
///
/// 4. Beyond their share, small blocks need not earn pages up to a part of the slack: the page that they took
/// from large blocks would be missed there, and several would move.
/// 5. Thread caches that miss often although memory is free elsewhere get more of it, up to a fixed amount,
/// unless there is to be no slack.
///
/// Guarded by the lock of the [PageTable][io.cistern.caching.internal.page.PageTable].
final class GrowthPolicy {
    /// A workload on one stream comes to rest within a few passes with hardly a page more than its peak; fewer
    /// moves a page would buy what it never needs.
    private static final long MOVES_A_PAGE = 64;

    /// Less than half of what PyTorch takes from the driver for the first block of more than 1 MiB.
    private static final long SMALL_SHARE_BYTES = 8L << 20;

    /// A 128th of the peak. With a 64th, vit_streams reserves more.
    private static final int SMALL_SHARE_SHIFT = 7;

    /// Of the peak. With 0.025, llama_generate reserves more; with 0.01, it makes driver calls again in its third
    /// and fourth pass.
    private static final double MAX_SMALL_SLACK = 0.015;

    /// An eighth. With a half, vit_streams reserves more; with a 32nd, gnn_sample makes more calls.
    private static final int MUCH_SHIFT = 3;

    /// Half as much again as a thread cache may hold. With it, 64 live blocks of mixed sizes up to 1 MiB find
    /// nearly all successors in the thread cache; recorded programs reserve as much as without.
    static final long THREAD_CACHE_SHARE_BYTES = 48L << 20;

    /// A 1024th of the device: 140 MiB of an H200. Recorded programs are soon past that: four of five make
    /// the same calls as without, gnn_sample more at first, and reserves less.
    private static final int LITTLE_SHIFT = 10;

    private final double slack;
    private final long littleBytes;
    private long peakBytes;
    /// Bytes moved and not paid out in pages yet; between streams they count [#MOVES_A_PAGE] times, since there
    /// the one that takes waits for the one that gives.
    private long earnedBytes;

    private long boughtBytes;
    private long movedBytes;

    /// @param slack how much more than the peak may be reserved, as a part of it
    /// @param deviceBytes the device's memory
    GrowthPolicy(double slack, long deviceBytes) {
        this.slack = slack;
        this.littleBytes = slack > 0 ? deviceBytes >> LITTLE_SHIFT : 0;
    }

    /// So many bytes are live at once.
    void needed(long liveBytes) {
        peakBytes = Math.max(peakBytes, liveBytes);
    }

    /// Whether more must be reserved than is.
    boolean isNeeded(long reservedBytes) {
        return reservedBytes < peakBytes;
    }

    /// Whether so little is reserved, with so much more, that pages need not move.
    boolean isLittle(long reservedBytes, long byteSize) {
        return reservedBytes + byteSize <= littleBytes;
    }

    /// Whether a page of a size may be bought for small blocks instead of moving one.
    boolean fitsSmallSlack(long reservedBytes, long byteSize) {
        return reservedBytes + byteSize <= peakBytes + (long) (peakBytes * Math.min(slack, MAX_SMALL_SLACK));
    }

    /// Whether a page of a size may be bought instead of moving others; if so, it is paid for.
    boolean isEarned(long reservedBytes, long byteSize) {
        boolean earned = earnedBytes >= MOVES_A_PAGE * byteSize
                && reservedBytes + byteSize <= peakBytes + (long) (peakBytes * slack);
        earnedBytes -= earned ? MOVES_A_PAGE * byteSize : 0;
        return earned;
    }

    /// Up to which amount small blocks get more because thread caches miss often.
    long threadCacheShareBytes() {
        return slack > 0 ? Math.max(THREAD_CACHE_SHARE_BYTES, smallShareBytes()) : 0;
    }

    /// What small blocks have for themselves.
    long smallShareBytes() {
        return Math.max(SMALL_SHARE_BYTES, peakBytes >> SMALL_SHARE_SHIFT);
    }

    /// A page was bought.
    void bought(long byteSize) {
        boughtBytes += byteSize;
    }

    /// A page was moved.
    void moved(long byteSize, boolean fromOtherStream) {
        movedBytes += byteSize;
        earnedBytes += fromOtherStream ? MOVES_A_PAGE * byteSize : byteSize;
    }

    /// Whether much of what was bought had to move. Until then pages can be larger: four of five recorded
    /// programs make a third fewer calls in their first pass and reserve as much.
    boolean movesMuch() {
        return movedBytes > boughtBytes >> MUCH_SHIFT;
    }

    /// The most that was ever live at once.
    long peakBytes() {
        return peakBytes;
    }
}
