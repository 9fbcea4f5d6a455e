package io.cistern.internal.capture;

import io.cistern.internal.routing.Router;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Finds the graph memory that decides about a block, by the block's address.
///
/// **Threads.** Any.
final class BlockHolders {
    private final Router router;

    /// The memories with a graph that uses the block at each launch, even if the program has freed the
    /// block.
    private final Map<Long, List<GraphBlocks>> owners = new ConcurrentHashMap<>();

    /// The memory that keeps the block, which the program has freed.
    private final Map<Long, GraphBlocks> keepers = new ConcurrentHashMap<>();

    BlockHolders(Router router) {
        this.router = router;
    }

    /// Adds a memory that decides about the free of a live block, after those that already do.
    void own(Long address, GraphBlocks memory) {
        owners.merge(
                address,
                List.of(memory),
                (present, added) -> present.contains(memory)
                        ? present
                        : Stream.concat(present.stream(), added.stream()).toList());
        router.markOfGraph(address);
    }

    List<GraphBlocks> owners(Long address) {
        return owners.getOrDefault(address, List.of());
    }

    /// Forgets a block that is returned to its allocator, before the allocator can reuse the address.
    void forget(Long address) {
        owners.remove(address);
        keepers.remove(address);
    }

    /// Keeps a live block that the program frees. The mark is set first: only one of two racing captures
    /// can set it.
    ///
    /// @return false if no live block begins there, or the block is already kept
    boolean keep(Long address, GraphBlocks memory) {
        if (!router.keep(address)) {
            return false;
        }
        try {
            keepers.put(address, memory);
        } catch (OutOfMemoryError full) {
            router.revive(address);
            throw full;
        }
        return true;
    }

    /// Replaces the keeper of a kept block.
    void passOn(Long address, GraphBlocks memory) {
        keepers.put(address, memory);
    }

    /// Makes a kept block the program's again.
    void revive(Long address) {
        keepers.remove(address);
        router.revive(address);
    }

    @Nullable
    GraphBlocks keeper(Long address) {
        return keepers.get(address);
    }
}
