package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.diagnostics.SegmentMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/// Describes the memory of one shard as segments: each stretch of addresses that have memory, with its blocks.
/// A plain segment is one stretch; in an arena of pages, a stretch lies between two holes.
final class ShardSegments {
    private final List<SegmentMemory> segments = new ArrayList<>();
    private final List<SegmentMemory.Block> stretch = new ArrayList<>();
    private final OptionalLong stream;

    private ShardSegments(OptionalLong stream) {
        this.stream = stream;
    }

    /// Walks over all blocks. The caller holds the shard's lock.
    static List<SegmentMemory> of(Shard shard, Blocks blocks, List<AddressRange> ranges) {
        var walk = new ShardSegments(shard.isClosed() ? OptionalLong.empty() : OptionalLong.of(shard.stream));
        for (AddressRange range : ranges) {
            for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
                walk.add(range, blocks, block);
            }
            walk.endStretch(range);
        }
        return walk.segments;
    }

    private void add(AddressRange range, Blocks blocks, int block) {
        switch (blocks.state[block]) {
            case Blocks.LIVE -> add(blocks, block, SegmentMemory.State.TAKEN);
            case Blocks.FENCED -> add(blocks, block, SegmentMemory.State.WAITING);
            case Blocks.FREE -> add(blocks, block, SegmentMemory.State.IDLE);
            default -> endStretch(range); // no memory, or a thread is getting it or giving it back
        }
    }

    private void add(Blocks blocks, int block, SegmentMemory.State state) {
        stretch.add(new SegmentMemory.Block(blocks.address[block], blocks.byteSize[block], state));
    }

    private void endStretch(AddressRange range) {
        if (!stretch.isEmpty()) {
            long from = stretch.getFirst().address();
            long to = stretch.getLast().address() + stretch.getLast().byteSize();
            segments.add(new SegmentMemory(from, to - from, stream, range.keepsAddresses(), stretch));
            stretch.clear();
        }
    }
}
