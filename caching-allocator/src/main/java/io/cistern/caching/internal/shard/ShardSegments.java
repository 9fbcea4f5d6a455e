package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.diagnostics.SegmentMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// Describes the memory of one shard as segments: each stretch of addresses that have memory, with its blocks.
/// A plain segment is one stretch; in an arena of pages, a stretch lies between two holes.
final class ShardSegments {
    private ShardSegments() {}

    /// Walks over all blocks. The caller holds the shard's lock.
    static List<SegmentMemory> of(Shard shard, Blocks blocks, List<AddressRange> ranges) {
        OptionalLong stream = shard.isClosed() ? OptionalLong.empty() : OptionalLong.of(shard.key);
        List<SegmentMemory> segments = new ArrayList<>();
        for (AddressRange range : ranges) {
            List<SegmentMemory.Block> stretch = new ArrayList<>();
            for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
                SegmentMemory.State state = state(blocks.state[block]);
                if (state != null) {
                    stretch.add(new SegmentMemory.Block(blocks.address[block], blocks.byteSize[block], state));
                }
                if (!stretch.isEmpty() && (state == null || blocks.next[block] == Blocks.NONE)) {
                    long from = stretch.getFirst().address();
                    long to = stretch.getLast().address() + stretch.getLast().byteSize();
                    segments.add(new SegmentMemory(from, to - from, stream, range.keepsAddresses(), stretch));
                    stretch.clear();
                }
            }
        }
        return segments;
    }

    /// Returns null for a block that has no memory here, or is claimed.
    private static SegmentMemory.@Nullable State state(byte state) {
        return switch (state) {
            case Blocks.LIVE -> SegmentMemory.State.TAKEN;
            case Blocks.FENCED -> SegmentMemory.State.WAITING;
            case Blocks.FREE -> SegmentMemory.State.IDLE;
            default -> null;
        };
    }
}
