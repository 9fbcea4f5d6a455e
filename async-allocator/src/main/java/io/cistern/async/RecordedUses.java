package io.cistern.async;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// The streams that live blocks of one device are used on besides that of their free.
///
/// **Threads.** Any. Where no uses are recorded, a free pays a look at a number.
final class RecordedUses {
    /// The uses of one block.
    ///
    /// @param streams streams that exist
    /// @param fences behind the last work of streams that have ended since; owned by whoever has the uses
    record Uses(Set<Long> streams, List<Long> fences) {
        private static Uses of(Set<Long> streams, List<Long> fences) {
            return new Uses(Set.copyOf(streams), List.copyOf(fences));
        }

        private Uses with(long stream) {
            Set<Long> more = new HashSet<>(streams);
            more.add(stream);
            return of(more, fences);
        }

        private Uses ended(long stream, long fence) {
            Set<Long> fewer = new HashSet<>(streams);
            fewer.remove(stream);
            List<Long> more = new ArrayList<>(fences);
            more.add(fence);
            return of(fewer, more);
        }
    }

    private static final Uses NONE = new Uses(Set.of(), List.of());

    private final ConcurrentMap<Long, Uses> ofBlocks = new ConcurrentHashMap<>();

    void add(long address, long stream) {
        ofBlocks.compute(address, (_, uses) -> (uses == null ? NONE : uses).with(stream));
    }

    /// Whether a live block has any.
    boolean any() {
        return !ofBlocks.isEmpty();
    }

    /// Takes the uses of a block that is being freed, or null.
    @Nullable
    Uses take(long address) {
        return ofBlocks.remove(address);
    }

    /// Replaces a stream that ends, wherever it is, by a fence behind its last work.
    ///
    /// @param fence makes one for each block
    void streamClosing(long stream, LongSupplier fence) {
        for (Long address : ofBlocks.keySet()) {
            ofBlocks.computeIfPresent(
                    address, (_, uses) -> uses.streams.contains(stream) ? uses.ended(stream, fence.getAsLong()) : uses);
        }
    }
}
