package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.Blocks;
import java.util.List;
import java.util.OptionalLong;

/// What one shard has, in bytes, by what could be done with it.
///
/// ```
/// mapped = live + waiting + idle        idle = returnable + shared
/// ```
///
/// @param stream whose memory it is; empty if that has ended, and no block of it is in use
/// @param small whether of small blocks
/// @param liveBytes in use
/// @param waitingBytes freed, but another stream may still use them
/// @param idleBytes free
/// @param returnableBytes free in whole pages or segments; 0 if it was not asked for
/// @param largestFreeBytes the largest free block
public record ShardSurvey(
        OptionalLong stream,
        boolean small,
        long liveBytes,
        long waitingBytes,
        long idleBytes,
        long returnableBytes,
        long largestFreeBytes) {
    /// Walks all blocks. With the lock of the shard, and with its driver lock for the returnable ones.
    static ShardSurvey of(StreamShard shard, Blocks blocks, List<AddressRange> ranges, boolean tellReturnable) {
        long[] byState = new long[Blocks.RETIRED + 1];
        long returnable = 0;
        long largest = 0;
        for (AddressRange range : ranges) {
            for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
                long byteSize = blocks.byteSize[block];
                byState[blocks.state[block]] += byteSize;
                if (blocks.state[block] == Blocks.FREE) {
                    returnable += tellReturnable ? returnable(range, blocks.address[block], blocks.end(block)) : 0;
                    largest = Math.max(largest, byteSize);
                }
            }
        }
        return new ShardSurvey(
                shard.isClosed() && byState[Blocks.LIVE] == 0 ? OptionalLong.empty() : OptionalLong.of(shard.stream),
                shard.small,
                byState[Blocks.LIVE],
                byState[Blocks.FENCED],
                byState[Blocks.FREE],
                returnable,
                largest);
    }

    private static long returnable(AddressRange range, long from, long to) {
        long bytes = 0;
        for (AddressRange.Range part = range.lastReturnable(from, to); part != null; ) {
            bytes += part.to() - part.from();
            part = range.lastReturnable(from, part.from());
        }
        return bytes;
    }

    /// With so many bytes of the live ones told as idle, since thread caches hold them.
    public ShardSurvey withIdle(long threadCacheBytes) {
        return new ShardSurvey(
                stream,
                small,
                liveBytes - threadCacheBytes,
                waitingBytes,
                idleBytes + threadCacheBytes,
                returnableBytes,
                largestFreeBytes);
    }

    /// Free in pages or segments that have a block in use too.
    public long sharedBytes() {
        return idleBytes - returnableBytes;
    }
}
