package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.spi.Segment;
import org.jspecify.annotations.Nullable;

/// A segment from a source of plain ranges. It is returned whole or not at all.
public final class PlainSegment extends AddressRange {
    private final SegmentGrowth maker;
    final Segment segment;

    /// Whether it was returned or is about to be: another shard may obtain its addresses. Set before that
    /// can happen, so a thread with such an address sees it.
    private volatile boolean gone;

    /// @param from where the first block may begin
    /// @param byteSize the bytes for blocks from there on
    public PlainSegment(SegmentGrowth maker, Shard shard, Segment segment, long from, long byteSize) {
        super(shard, from, byteSize);
        this.maker = maker;
        this.segment = segment;
    }

    @Override
    @Nullable
    public Range lastReturnable(long from, long to) {
        return from == address && to == end() ? new Range(from, to) : null;
    }

    @Override
    public long giveBack(long from, long to) {
        gone = true;
        try {
            gone = maker.tryRelease(this);
        } catch (RuntimeException | Error failure) {
            gone = false;
            throw failure;
        }
        return gone ? segment.byteSize() : STAYS;
    }

    @Override
    public long edgeBytes() {
        return segment.byteSize() - byteSize;
    }

    /// Whether a live block's address lies in this segment.
    public boolean holds(long blockAddress) {
        return !gone && Long.compareUnsigned(blockAddress - address, byteSize) < 0;
    }
}
