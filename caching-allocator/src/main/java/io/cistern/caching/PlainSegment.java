package io.cistern.caching;

import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import org.jspecify.annotations.Nullable;

/// A segment from a source of plain ranges. It goes back whole or not at all.
final class PlainSegment extends Region {
    private final RangeSource source;
    private final Segment segment;
    private final Reserved reserved;
    private final RegionMap regions;

    /// Puts blocks on a segment.
    ///
    /// @param from where the first may begin
    /// @param byteSize how many bytes from there are for blocks
    PlainSegment(
            StreamShard shard,
            RangeSource source,
            Segment segment,
            long from,
            long byteSize,
            Reserved reserved,
            RegionMap regions) {
        super(shard, from, byteSize);
        this.source = source;
        this.segment = segment;
        this.reserved = reserved;
        this.regions = regions;
    }

    @Override
    @Nullable
    Range lastReturnable(long from, long to) {
        return from == address && to == end() ? new Range(from, to) : null;
    }

    @Override
    long giveBack(long from, long to) {
        regions.remove(this, address, byteSize); // before the addresses can come again for another shard
        try {
            if (!source.tryRelease(segment)) {
                regions.put(this, address, byteSize);
                return STAYS;
            }
        } catch (RuntimeException | Error failure) {
            regions.put(this, address, byteSize);
            throw failure;
        }
        reserved.released(segment.address(), segment.byteSize());
        return to - from;
    }

    @Override
    boolean keepsAddresses() {
        return false;
    }

    @Override
    boolean reusesAddresses() {
        return false;
    }

    @Override
    void close() {}
}
