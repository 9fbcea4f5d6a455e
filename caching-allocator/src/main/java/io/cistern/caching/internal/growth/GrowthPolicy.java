package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;

/// When a page is created, and how large it is.
///
/// 1. While less is reserved than was ever live at once, counting what is asked for now, a missing page is
/// created: the program needs that much anyway. So it is while less is reserved than a small share of the
/// device: then streams need not wait for each other.
/// 2. Above, an idle page is moved. Another one is created only where no page is idle.
/// 3. A page of another stream that is still at work would make the taker wait. While less than a sixteenth of the
/// device is reserved, memory costs less than time: such pages are left alone, and a missing one is created.
/// 4. A call for a page takes about the same time for any size, and a page is idle only as a whole. So a page for
/// large blocks is a share of the most that was ever live at once; a power of two, so that the page that leaves
/// a place fits into many others. A page for small blocks is as small as pages can be.
/// 5. Where little is left of the device, pages are finer: what a page holds besides its blocks can't serve
/// others.
///
/// Guarded by the lock of the [PageTable][io.cistern.caching.internal.page.PageTable].
final class GrowthPolicy {
    private static final int USUAL_SHARE_SHIFT = 7;
    private static final int TIGHT_SHARE_SHIFT = 10;

    /// A 1024th of the device is nothing that anybody misses.
    private static final int LITTLE_SHIFT = 10;

    /// Where a sixteenth of the device is reserved, fifteen are left for others.
    private static final int PLENTY_SHIFT = 4;

    /// A page takes at most this share of what is left.
    private static final int LEFT_SHIFT = 5;

    /// How much of what is left may be used up before it is asked for anew: others use the device too.
    private static final int LOOK_SHIFT = 3;

    /// Multiple of all page sizes.
    private final long slotBytes;

    private final long fixedBytes;
    private final long largestBytes;
    private final int shareShift;
    private final long plentyBytes;

    private final long capBytes;

    /// What may be reserved, as far as was known last: what was reserved then and what the device had free, or a
    /// cap.
    private long roomBytes;

    /// When it is to be found out again.
    private volatile long lookAtBytes;

    /// The most that was ever live at once; at first, what is little.
    private long peakBytes;

    GrowthPolicy(PagePolicy policy, long slotBytes, long deviceBytes, long capBytes) {
        this.slotBytes = slotBytes;
        this.fixedBytes = Sizes.roundUp(policy.fixedBytes(), slotBytes);
        this.largestBytes = policy.largestBytes();
        boolean isTight = policy.fit() == PageFit.TIGHT;
        boolean weighs = policy.reuse() == PageReuse.ADAPTIVE && !isTight;
        this.shareShift = isTight ? TIGHT_SHARE_SHIFT : USUAL_SHARE_SHIFT;
        this.plentyBytes = weighs ? deviceBytes >> PLENTY_SHIFT : 0;
        this.peakBytes = isTight ? 0 : deviceBytes >> LITTLE_SHIFT;
        this.capBytes = capBytes;
        this.roomBytes = Math.min(deviceBytes, capBytes);
    }

    /// Whether so much is reserved by now that what is left is to be found out.
    boolean looksDue(long reservedBytes) {
        return reservedBytes >= lookAtBytes;
    }

    /// So much is left.
    ///
    /// @param freeBytes what the device has free
    void left(long reservedBytes, long freeBytes) {
        roomBytes = Math.min(reservedBytes + freeBytes, capBytes);
        lookAtBytes = reservedBytes + Math.max(slotBytes, (roomBytes - reservedBytes) >> LOOK_SHIFT);
    }

    /// So many bytes are live at once.
    void needed(long liveBytes) {
        peakBytes = Math.max(peakBytes, liveBytes);
    }

    /// Whether more must be reserved than is.
    boolean isNeeded(long reservedBytes) {
        return reservedBytes < peakBytes;
    }

    /// Whether memory costs less than time.
    boolean hasPlenty(long reservedBytes) {
        return reservedBytes < plentyBytes;
    }

    /// What the sizes of holes and of pages are multiples of.
    long unit() {
        return fixedBytes != 0 ? fixedBytes : slotBytes;
    }

    /// The size of the next page.
    ///
    /// @param isForSmall whether small blocks will lie in it
    /// @param reservedBytes what is reserved now
    long pageBytes(boolean isForSmall, long reservedBytes) {
        if (isForSmall || fixedBytes != 0) {
            return unit();
        }
        long left = Math.max(0, roomBytes - reservedBytes);
        long share = Math.min(peakBytes >> shareShift, left >> LEFT_SHIFT);
        share = Math.min(Long.highestOneBit(share), largestBytes);
        return Math.max(share / slotBytes * slotBytes, slotBytes);
    }
}
