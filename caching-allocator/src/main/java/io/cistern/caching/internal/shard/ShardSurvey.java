package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.Blocks;
import java.util.List;
import java.util.OptionalLong;

/// The bytes of one shard, by their state.
///
/// ```
/// mapped = live + waiting + idle        idle = returnable + shared
/// ```
///
/// @param stream the shard's stream; empty if it has ended and no block is in use
/// @param small whether the shard holds small blocks
/// @param liveBytes bytes in use
/// @param waitingBytes bytes that were freed and that another stream may still use
/// @param idleBytes free bytes, including those that no block can use
/// @param returnableBytes free bytes in whole pages or segments; 0 if not requested
/// @param largestFreeBytes the size of the largest free block
public record ShardSurvey(
        OptionalLong stream,
        boolean small,
        long liveBytes,
        long waitingBytes,
        long idleBytes,
        long returnableBytes,
        long largestFreeBytes) {
    /// Walks over all blocks. The caller holds the shard's lock, and its driver lock if `tellReturnable` is set.
    static ShardSurvey of(Shard shard, Blocks blocks, List<AddressRange> ranges, boolean tellReturnable) {
        long[] byState = new long[Blocks.RETIRED + 1];
        long returnable = 0;
        long largest = 0;
        for (AddressRange range : ranges) {
            byState[Blocks.FREE] += range.edgeBytes();
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
                shard.isClosed() && byState[Blocks.LIVE] == 0 ? OptionalLong.empty() : OptionalLong.of(shard.key),
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
        return bytes == 0 ? 0 : bytes + range.edgeBytes();
    }
}
