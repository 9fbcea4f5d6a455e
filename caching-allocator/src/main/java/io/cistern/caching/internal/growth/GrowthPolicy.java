package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.page.AliasMappings;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;

/// Decides when a page is created and how large it is.
///
/// 1. While less is reserved than the peak of live bytes (with the current request), a missing page is created:
///    the program needs that much anyway. The same holds while less than a small share of the device is
///    reserved, so that streams need not wait for each other.
/// 2. Above that, an idle page is moved. A page is created only if none is idle.
/// 3. A page of a stream that is still at work would make the taker wait. Such pages stay, and a missing page is
///    created, while less than an eighth more than the peak of live bytes is reserved, and less than a sixteenth of
///    the available memory, which excludes what others use.
/// 4. Streams whose requests do not repeat take pages from each other without end. Once all pages have moved as often
///    as they keep former places, those places do not help: a missing page is created, up to twice the peak
///    of live bytes, while less is reserved than the same sixteenth.
/// 5. A driver call for a page takes about the same time for any size, and a page is idle only as a whole. So a
///    page for large blocks is a share of the peak of live bytes, and half of that while several streams have such
///    blocks, because each keeps pages that it uses in part. There are two sizes per doubling, so that a
///    page that moves fits into many places. A page for small blocks has the smallest size.
/// 6. When little of the device is left, pages are smaller: the part of a page that its blocks do not use
///    can't serve others.
///
/// **The constants.** Each weighs one cost against another: a driver call against bytes that a page leaves unused
/// ([#USUAL_SHARE], [#FINEST_SHARE]), a wait against bytes ([#EIGHTH_SHIFT], [#PLENTY_SHIFT]), and a driver call
/// against a refusal ([#LEFT_SHIFT]). The costs differ between programs, so the constants are measured, not
/// derived.
///
/// Guarded by the lock of the [PageTable][io.cistern.caching.internal.page.PageTable].
final class GrowthPolicy {
    private static final int USUAL_SHARE = 96;

    /// A 1024th of the device is too little to save; with tight pages, a 1024th of the peak.
    private static final int FINEST_SHARE = 1024;

    /// More than an eighth above the peak made no program faster. The driver is asked again how much is left once an
    /// eighth of the last answer is used, before the size of a page could change.
    private static final int EIGHTH_SHIFT = 3;

    /// A sixteenth of the memory leaves fifteen sixteenths to other processes.
    private static final int PLENTY_SHIFT = 4;

    /// A page takes at most this share of the bytes that are left.
    private static final int LEFT_SHIFT = 5;

    /// All page sizes are multiples of this.
    private final long slotBytes;

    private final long fixedBytes;

    /// The unit of the sizes of holes and pages.
    final long unit;

    private final int share;
    private final boolean takesPlenty;

    private final long capBytes;

    /// The bytes that may be reserved, as last known: the bytes reserved then and those the device had free,
    /// but no more than the cap.
    private long roomBytes;

    /// The reserved bytes at which the driver is asked again.
    volatile long lookAtBytes;

    /// The peak of live bytes, lowered when memory below it is returned; at least [#leastPeakBytes].
    private long peakBytes;

    /// The bytes of all pages that moved to new places of another stream since memory was last returned. A
    /// page that comes back to a former place does not count: that place did help.
    private long movedBytes;

    /// The share of the device that is too little to save.
    private final long leastPeakBytes;

    /// The reserved bytes when memory was needed last.
    private long lastReservedBytes;

    private boolean haveSeveralStreams;

    GrowthPolicy(PagePolicy policy, long slotBytes, long deviceBytes, long capBytes) {
        this.slotBytes = slotBytes;
        this.fixedBytes = Sizes.roundUp(policy.fixedBytes(), slotBytes);
        this.unit = fixedBytes != 0 ? fixedBytes : slotBytes;
        boolean isTight = policy.fit() == PageFit.TIGHT;
        this.share = isTight ? FINEST_SHARE : USUAL_SHARE;
        this.takesPlenty = policy.reuse() == PageReuse.ADAPTIVE && !isTight;
        this.leastPeakBytes = isTight ? 0 : deviceBytes / FINEST_SHARE;
        this.peakBytes = leastPeakBytes;
        this.capBytes = capBytes;
        this.roomBytes = Math.min(deviceBytes, capBytes);
    }

    /// Records how much is left.
    ///
    /// @param freeBytes the bytes that the device has free
    void setRoom(long reservedBytes, long freeBytes) {
        roomBytes = Math.min(reservedBytes + freeBytes, capBytes);
        lookAtBytes = reservedBytes + Math.max(slotBytes, (roomBytes - reservedBytes) >> EIGHTH_SHIFT);
    }

    /// Raises the peak of live bytes. If memory was returned meanwhile, first lowers the peak to what is
    /// left: the program may not need as much again, and large pages would not fit into less.
    ///
    /// @param ofSeveral whether several streams have large live blocks
    /// @param reservedBytes the bytes reserved now
    void setPeak(long liveBytes, boolean ofSeveral, long reservedBytes) {
        if (reservedBytes < lastReservedBytes) {
            peakBytes = Math.min(peakBytes, Math.max(reservedBytes, leastPeakBytes));
            movedBytes = 0;
        }
        lastReservedBytes = reservedBytes;
        peakBytes = Math.max(peakBytes, liveBytes);
        haveSeveralStreams = ofSeveral;
    }

    /// Whether a missing page is created although others are idle.
    boolean creates(long reservedBytes) {
        boolean repeats = movedBytes / AliasMappings.MAX_A_PAGE <= reservedBytes;
        return reservedBytes < peakBytes || (!repeats && hasPlenty(reservedBytes, 2 * peakBytes));
    }

    /// Records the bytes of pages that moved to new places of another stream.
    void moved(long byteSize) {
        movedBytes += byteSize;
    }

    /// Whether so little is reserved that memory costs less than time.
    boolean hasPlenty(long reservedBytes) {
        return hasPlenty(reservedBytes, peakBytes + (peakBytes >> EIGHTH_SHIFT));
    }

    private boolean hasPlenty(long reservedBytes, long spared) {
        return takesPlenty && reservedBytes < Math.min(spared, roomBytes >> PLENTY_SHIFT);
    }

    /// The bytes that may still be reserved, as last known.
    long leftBytes(long reservedBytes) {
        return Math.max(0, roomBytes - reservedBytes);
    }

    /// Returns the size of the next page.
    ///
    /// @param isForSmall whether small blocks will lie in it
    /// @param reservedBytes the bytes reserved now
    long pageBytes(boolean isForSmall, long reservedBytes) {
        if (isForSmall || fixedBytes != 0) {
            return unit;
        }
        long left = leftBytes(reservedBytes) >> LEFT_SHIFT;
        long most = Math.min(peakBytes / (haveSeveralStreams ? 2L * share : share), left);
        long power = Long.highestOneBit(most);
        long between = power + power / 2; // two sizes per doubling
        long size = Math.min(between <= most ? between : power, PagePolicy.LARGEST_BYTES);
        return Math.max(size / slotBytes * slotBytes, slotBytes);
    }
}
