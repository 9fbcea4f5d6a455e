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

/// Who allocated each live block, and who freed the last so many. **Threads.** Any.
final class CheckedBlocks {
    /// Enough to find what was freed in the same step of a program; some 2 KiB each.
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

    /// Layers of this allocator, beside those of the framework.
    private static final Set<String> OWN =
            Set.of(CheckedBlocks.class.getName(), CheckedAllocator.class.getName(), ParanoidAllocator.class.getName());

    private final NavigableMap<Long, Block> live = new ConcurrentSkipListMap<>();

    /// The eldest first. Guarded by itself.
    private final Map<Long, Block> freed = new LinkedHashMap<>();

    void allocated(long address, long byteSize, int device, long stream) {
        Block block = new Block(address, byteSize, device, stream, callSite(), List.of());
        synchronized (freed) {
            freed.remove(address);
        }
        live.put(address, block);
    }

    /// The code that called into the framework.
    private static List<StackFrame> callSite() {
        return WALKER.walk(
                stack -> stack.dropWhile(CheckedBlocks::isOwn).limit(MAX_FRAMES).toList());
    }

    private static boolean isOwn(StackFrame frame) {
        String name = frame.getClassName();
        return FrameworkFrames.contains(name) || OWN.contains(name);
    }

    /// There is no block at an address any more, and nothing is known of its free.
    void forget(Long address) {
        live.remove(address);
    }

    /// The live block that begins at an address, or null.
    @Nullable
    Block live(long address) {
        return live.get(address);
    }

    /// A block is about to be freed: before its address can come again.
    ///
    /// @return false if somebody else frees it
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

    /// The live block that an address lies in, else the one freed last that began there.
    Optional<BlockHistory> find(long address) {
        Map.Entry<Long, Block> below = live.floorEntry(address);
        if (below != null && below.getValue().history().covers(address)) {
            return Optional.of(below.getValue().history());
        }
        synchronized (freed) {
            return Optional.ofNullable(freed.get(address)).map(Block::history);
        }
    }

    /// The block freed last that an address lay in.
    Optional<BlockHistory> freedOver(long address) {
        synchronized (freed) {
            return freed.values().stream()
                    .filter(block -> address >= block.address && address < block.address + block.byteSize)
                    .reduce((_, later) -> later)
                    .map(Block::history);
        }
    }
}
