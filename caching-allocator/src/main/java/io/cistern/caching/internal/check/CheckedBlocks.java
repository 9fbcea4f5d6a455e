package io.cistern.caching.internal.check;

import io.cistern.diagnostics.BlockHistory;
import io.cistern.internal.names.FrameworkFrames;
import java.lang.StackWalker.StackFrame;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import org.jspecify.annotations.Nullable;

/// Remembers the code that allocated each live block and the code that freed recent ones. **Threads.** Any.
public final class CheckedBlocks {
    /// Enough to find blocks that were freed in the same step of a program; each keeps stack frames in the Java heap.
    private static final int FREED_KEPT = 1 << 14;

    record Block(
            long address,
            long byteSize,
            int device,
            long stream,
            List<StackFrame> allocatedAt,
            List<StackFrame> freedAt) {
        BlockHistory history() {
            return new BlockHistory(address, byteSize, device, stream, elements(allocatedAt), elements(freedAt));
        }

        private static List<StackTraceElement> elements(List<StackFrame> frames) {
            return frames.stream().map(StackFrame::toStackTraceElement).toList();
        }
    }

    private static final int MAX_FRAMES = 12;

    private static final StackWalker WALKER = StackWalker.getInstance();

    /// Layers of this allocator, in addition to those of the framework.
    private static final Set<String> OWN =
            Set.of(CheckedBlocks.class.getName(), CheckedAllocator.class.getName(), ParanoidAllocator.class.getName());

    private final NavigableMap<Long, Block> live = new ConcurrentSkipListMap<>();

    /// The oldest first. Guarded by itself.
    private final Map<Long, Block> freed = new LinkedHashMap<>();

    void allocated(long address, long byteSize, int device, long stream) {
        Block block = new Block(address, byteSize, device, stream, callSite(), List.of());
        synchronized (freed) {
            freed.remove(address);
        }
        live.put(address, block);
    }

    /// Returns the code that called into the framework.
    private static List<StackFrame> callSite() {
        return WALKER.walk(
                stack -> stack.dropWhile(CheckedBlocks::isOwn).limit(MAX_FRAMES).toList());
    }

    private static boolean isOwn(StackFrame frame) {
        String name = frame.getClassName();
        return FrameworkFrames.contains(name) || OWN.contains(name);
    }

    /// Removes a block without a record of its free.
    void forget(Long address) {
        live.remove(address);
    }

    @Nullable
    Block live(long address) {
        return live.get(address);
    }

    /// Moves a live block to the freed ones, before its address can be allocated again.
    ///
    /// @return false if another thread frees it
    boolean freeing(Block block) {
        Block gone =
                new Block(block.address, block.byteSize, block.device, block.stream, block.allocatedAt, callSite());
        if (!live.remove(block.address, block)) {
            return false;
        }
        synchronized (freed) {
            freed.remove(block.address);
            freed.put(block.address, gone);
            if (freed.size() > FREED_KEPT) {
                freed.remove(freed.keySet().iterator().next());
            }
        }
        return true;
    }

    /// Finds the live block around an address; if there is none, the last freed block that began there.
    public Optional<BlockHistory> find(long address) {
        Map.Entry<Long, Block> below = live.floorEntry(address);
        if (below != null && below.getValue().history().covers(address)) {
            return Optional.of(below.getValue().history());
        }
        synchronized (freed) {
            return Optional.ofNullable(freed.get(address)).map(Block::history);
        }
    }

    /// Finds the last freed block that contained an address.
    Optional<BlockHistory> freedOver(long address) {
        synchronized (freed) {
            return freed.values().stream()
                    .filter(block -> address >= block.address && address < block.address + block.byteSize)
                    .reduce((_, later) -> later)
                    .map(Block::history);
        }
    }
}
