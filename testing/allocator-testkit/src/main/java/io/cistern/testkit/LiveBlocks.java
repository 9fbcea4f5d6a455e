package io.cistern.testkit;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// Keeps the live blocks by address, and checks that a new block overlaps no other. Any thread may call any
/// method at any time.
final class LiveBlocks {
    private final TreeMap<Long, Block> byAddress = new TreeMap<>();
    private long byteSize;

    synchronized void add(Block block) {
        Map.Entry<Long, Block> before = byAddress.floorEntry(block.address());
        Map.Entry<Long, Block> after = byAddress.ceilingEntry(block.address());
        if (before != null && before.getValue().end() > block.address()) {
            throw new AssertionError(block + " overlaps " + before.getValue());
        }
        if (after != null && block.end() > after.getKey()) {
            throw new AssertionError(block + " overlaps " + after.getValue());
        }
        byAddress.put(block.address(), block);
        byteSize += block.byteSize();
    }

    /// Must be called before the block is freed, because another thread may get its address at once.
    synchronized void remove(Block block) {
        if (!byAddress.remove(block.address(), block)) {
            throw new AssertionError(block + " is not live");
        }
        byteSize -= block.byteSize();
    }

    synchronized long byteSize() {
        return byteSize;
    }

    synchronized List<Block> all() {
        return new ArrayList<>(byAddress.values());
    }
}
