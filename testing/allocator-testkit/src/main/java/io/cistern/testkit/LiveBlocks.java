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

    /// @param owner who returned the block, for the message
    synchronized void add(Block block, String owner) {
        Map.Entry<Long, Block> other = byAddress.lowerEntry(block.end());
        if (other != null && other.getValue().end() > block.address()) {
            throw new AssertionError("%s returned 0x%x for %d bytes on device %d; 0x%x of %d bytes is live there"
                    .formatted(
                            owner,
                            block.address(),
                            block.byteSize(),
                            block.device(),
                            other.getKey(),
                            other.getValue().byteSize()));
        }
        byAddress.put(block.address(), block);
        byteSize += block.byteSize();
    }

    /// Must be called before the block is freed, because another thread may get its address at once.
    synchronized void remove(Block block) {
        if (!byAddress.remove(block.address(), block)) {
            throw new AssertionError("0x%x is not live".formatted(block.address()));
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
