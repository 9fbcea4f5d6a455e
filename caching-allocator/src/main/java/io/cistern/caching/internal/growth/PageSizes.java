package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.page.PageOwner;
import io.cistern.caching.options.PageFit;

/// How large new pages are.
///
/// A mapping call costs per handle, hardly per byte, and a handle can only be unmapped whole. So a page for large
/// blocks is a [share][PageFineness] of the most that was ever live at once, up to 512 MiB or what an option says; for
/// small blocks 2 MiB.
final class PageSizes {
    /// Multiple of all page sizes.
    private final long slotBytes;

    private final long fixedBytes;
    private final long largestBytes;
    private final PageFineness fineness;

    /// @param policy whose sizes count here
    PageSizes(PagePolicy policy, long slotBytes) {
        this.slotBytes = slotBytes;
        this.fixedBytes = Sizes.roundUp(policy.fixedBytes(), slotBytes);
        this.largestBytes = policy.largestBytes();
        this.fineness = PageFineness.of(policy.fit());
    }

    /// What arenas are multiples of.
    long unit() {
        return fixedBytes != 0 ? fixedBytes : slotBytes;
    }

    /// The size of the next page of a shard.
    ///
    /// @param growthPolicy knows the most that was ever live, and whether pages move
    long pageBytes(GrowthPolicy growthPolicy, PageOwner shard) {
        if (fixedBytes != 0) {
            return fixedBytes;
        }
        if (shard.isSmall()) {
            return slotBytes;
        }
        PageFineness its = shard.timeline().oneOfMany ? PageFineness.of(PageFit.TIGHT) : fineness;
        long page = its.pageBytes(growthPolicy.peakBytes(), growthPolicy.movesMuch(), largestBytes);
        return Math.max(Sizes.roundUp(its.leastBytes(largestBytes), slotBytes), page / slotBytes * slotBytes);
    }

    /// A page's size, less what is not needed, if sizes are not fixed.
    long cut(long byteSize, long neededBytes) {
        return fixedBytes != 0 ? byteSize : Math.min(byteSize, neededBytes);
    }
}
