package io.cistern.internal.capture;

import io.cistern.internal.routing.Router;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Finds the memory of graphs that decides about a block, by its address.
///
/// **Threads.** Any.
final class BlockHolders {
    private final Router router;

    /// The memories of which a graph uses the block at each launch, whether the program has freed the block or not.
    private final Map<Long, List<GraphBlocks>> owners = new ConcurrentHashMap<>();

    /// The memory that keeps the block, which the program has freed.
    private final Map<Long, GraphBlocks> keepers = new ConcurrentHashMap<>();

    BlockHolders(Router router) {
        this.router = router;
    }

    /// Lets the memory decide about the free of a live block, after those that do already.
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

    /// Forgets a block that goes back to its allocator, before that can use the address again.
    void forget(Long address) {
        owners.remove(address);
        keepers.remove(address);
    }

    /// Keeps a live block that the program frees. The mark comes first: of two captures that race, one sets it.
    ///
    /// @return false if no live block begins there, or it is kept already
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

    /// Names another keeper of a kept block.
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
