package io.cistern.hazards;

import io.cistern.hazards.StreamClocks.Stream;
import io.cistern.hazards.StreamHazard.Kind;
import io.cistern.hazards.StreamHazard.Place;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The uses of memory: live blocks with their last writes and the reads since, and freed ones until their memory
/// serves again.
///
/// 1. A use is compared with the uses of the same bytes that no use between them replaces. A use that is known to have
///    finished is dropped: nothing can come too early for it.
/// 2. A freed block keeps its last uses until other blocks lie on its memory. Then the new block's stream must come
///    after them. Memory is told apart by physical page, where pages are mapped: an allocator may map one at several
///    addresses.
/// 3. Memory that the driver orders itself, or gives out anew, has no past.
/// 4. Pinned memory of the host is used like a block, by copies and by kernels, and is never reused here.
///
/// Its size is bounded by the live blocks times their streams, and by [#MOST_FREED] freed blocks.
///
/// Guarded by the owner's lock.
final class MemoryUses {
    private static final int MOST_FREED = 1 << 16;

    /// The most uses of one block; more are of many disjoint parts, or have finished long ago.
    private static final int MOST_USES = 256;

    private static final long NO_PAGE = 0;

    /// Receives what is found.
    interface Found {
        void hazard(Kind kind, Place first, Place second, int device, Range range, Stream earlier, Stream later);
    }

    record Use(Range range, Stream stream, long number, Place place) {}

    private static final class Block {
        final int device;
        final Range range;
        final Use allocation;

        /// Whether a captured stream allocated it: launches order its uses.
        final boolean isOfGraph;

        List<Use> uses = new ArrayList<>(2);
        Set<Stream> recorded = Set.of();

        @Nullable
        Use free;

        Block(int device, Range range, Use allocation, boolean isOfGraph) {
            this.device = device;
            this.range = range;
            this.allocation = allocation;
            this.isOfGraph = isOfGraph;
        }
    }

    /// A part of a freed block's memory.
    ///
    /// @param from where it lies in its page, or, outside of pages, its address
    /// @param address its address while the block was alive
    private record Piece(Block block, long from, long byteSize, long address) {
        long end() {
            return from + byteSize;
        }
    }

    /// Where a range lies.
    private record Part(long page, long from, long byteSize, long address) {}

    private record Mapped(long byteSize, long page) {}

    private static final class Pinned {
        final Range range;
        List<Use> uses = List.of();

        Pinned(Range range) {
            this.range = range;
        }
    }

    private final StreamClocks clocks;
    private final Found found;
    private final NavigableMap<Long, Block> live = new TreeMap<>();
    private final NavigableMap<Long, Block> freed = new TreeMap<>();
    private final Deque<Block> oldestFreed = new ArrayDeque<>();
    private final NavigableMap<Long, Mapped> mappings = new TreeMap<>();
    /// Pinned memory of the host, by address.
    private final NavigableMap<Long, Pinned> pinned = new TreeMap<>();
    /// By page, the pieces by where they lie; they do not overlap.
    private final Map<Long, NavigableMap<Long, Piece>> pieces = new HashMap<>();

    MemoryUses(StreamClocks clocks, Found found) {
        this.clocks = clocks;
        this.found = found;
    }

    /// Checks and records a use by a stream's newest work.
    ///
    /// @param ofGraph whether a launched graph repeats it: memory that graphs keep is not free for it
    void used(Stream stream, Range range, Place place, boolean ofGraph) {
        Block block = at(live, range.from());
        if (block != null) {
            used(block, new Use(clipped(range, block.range), stream, stream.issued(), place));
            return;
        }
        Pinned host = pinnedAt(range.from());
        if (host != null) {
            host.uses = raced(
                    host.uses, new Use(clipped(range, host.range), stream, stream.issued(), place), stream.device);
            return;
        }
        Block gone = ofGraph ? null : at(freed, range.from());
        if (gone != null && gone.free != null && gone.range.covers(range)) {
            found.hazard(Kind.USE_AFTER_FREE, gone.free.place, place, gone.device, range, gone.free.stream, stream);
        }
    }

    private static Range clipped(Range range, Range block) {
        long end = Math.min(range.end(), block.end());
        return new Range(range.from(), end - range.from(), range.isWritten());
    }

    private static @Nullable Block at(NavigableMap<Long, Block> blocks, long address) {
        Map.Entry<Long, Block> below = blocks.floorEntry(address);
        return below != null && address < below.getValue().range.end() ? below.getValue() : null;
    }

    private void used(Block block, Use use) {
        Use allocation = block.allocation;
        if (!block.isOfGraph && !isBefore(allocation, use.stream)) {
            found.hazard(
                    Kind.USE_BEFORE_ALLOCATION,
                    allocation.place,
                    use.place,
                    block.device,
                    use.range,
                    allocation.stream,
                    use.stream);
        }
        block.uses = raced(block.uses, use, block.device);
    }

    /// Compares a use with earlier ones of a block.
    ///
    /// @return the uses that later ones must come after
    private List<Use> raced(List<Use> uses, Use use, int device) {
        List<Use> left = new ArrayList<>(uses.size() + 1);
        for (Use earlier : uses) {
            boolean isBefore = isBefore(earlier, use.stream);
            if (!isBefore && use.range.conflictsWith(earlier.range)) {
                found.hazard(Kind.RACE, earlier.place, use.place, device, use.range, earlier.stream, use.stream);
            }
            boolean isReplaced = isBefore
                    && use.range.covers(earlier.range)
                    && (use.range.isWritten() || (earlier.stream == use.stream && !earlier.range.isWritten()));
            if (!isReplaced && !clocks.isFinished(earlier.stream, earlier.number)) {
                left.add(earlier);
            }
        }
        left.add(use);
        if (left.size() > MOST_USES) {
            left.removeFirst();
        }
        return left;
    }

    /// Checks and records a use that a stream captures, against those of the same capture: a launch repeats them in
    /// their order. Each launch checks it against other work.
    void captured(Capture capture, Stream stream, Range range, Place place) {
        Block block = at(live, range.from());
        Range ofBlock = block == null ? range : clipped(range, block.range);
        capture.uses.add(new Capture.Repeated(range, place));
        capture.latest.compute(
                block == null ? range.from() : block.range.from(),
                (_, uses) -> raced(
                        uses == null ? List.of() : uses,
                        new Use(ofBlock, stream, stream.issued(), place),
                        stream.device));
    }

    private boolean isBefore(Use earlier, Stream later) {
        return clocks.isBefore(earlier.stream, earlier.number, later);
    }

    private @Nullable Pinned pinnedAt(long address) {
        Map.Entry<Long, Pinned> below = pinned.floorEntry(address);
        return below != null && address < below.getValue().range.end() ? below.getValue() : null;
    }

    /// Records that the GPU copies from and to some memory of the host in its own time.
    void pinned(long address, long byteSize) {
        pinned.put(address, new Pinned(new Range(address, byteSize, true)));
    }

    void unpinned(long address) {
        pinned.remove(address);
    }

    /// Checks that work on the bytes has finished before the host reads or writes them.
    void touched(Range range, Place place) {
        Block block = at(live, range.from());
        Pinned host = pinnedAt(range.from());
        List<Use> uses = block != null ? block.uses : host != null ? host.uses : List.of();
        for (Use use : uses) {
            if (range.conflictsWith(use.range) && !clocks.isFinished(use.stream, use.number)) {
                found.hazard(Kind.HOST_TOO_EARLY, use.place, place, use.stream.device, range, use.stream, use.stream);
            }
        }
    }

    /// Records a block whose allocation is a stream's newest work.
    void allocated(Stream stream, long address, long byteSize, Place place) {
        Range range = new Range(address, byteSize, true);
        Use allocation = new Use(range, stream, stream.issued(), place);
        if (stream.capture == null) {
            forEachPart(range, part -> takePast(part, allocation));
        } else {
            forEachPart(range, part -> takePast(part, null));
        }
        forgetFreed(range);
        live.put(address, new Block(stream.device, range, allocation, stream.capture != null));
    }

    /// Takes away the past of a part of memory, and compares it with an allocation.
    private void takePast(Part part, @Nullable Use allocation) {
        NavigableMap<Long, Piece> past = pieces.get(part.page);
        if (past == null) {
            return;
        }
        long end = part.from + part.byteSize;
        Map.Entry<Long, Piece> below = past.lowerEntry(part.from);
        if (below != null && below.getValue().end() > part.from) {
            takePast(past, below.getValue(), part.from, end, allocation);
        }
        for (Piece piece : List.copyOf(past.subMap(part.from, end).values())) {
            takePast(past, piece, part.from, end, allocation);
        }
        if (past.isEmpty()) {
            pieces.remove(part.page);
        }
    }

    private void takePast(NavigableMap<Long, Piece> past, Piece piece, long from, long end, @Nullable Use allocation) {
        past.remove(piece.from);
        long first = Math.max(piece.from, from);
        long last = Math.min(piece.end(), end);
        if (allocation != null) {
            compare(piece.block, new Range(piece.address + (first - piece.from), last - first, true), allocation);
        }
        if (piece.from < first) {
            past.put(piece.from, new Piece(piece.block, piece.from, first - piece.from, piece.address));
        }
        if (last < piece.end()) {
            past.put(last, new Piece(piece.block, last, piece.end() - last, piece.address + (last - piece.from)));
        }
    }

    private void compare(Block former, Range reused, Use allocation) {
        for (Use use : former.uses) {
            if (reused.overlaps(use.range) && !isBefore(use, allocation.stream)) {
                found.hazard(
                        Kind.REUSED_TOO_EARLY,
                        use.place,
                        allocation.place,
                        former.device,
                        allocation.range,
                        use.stream,
                        allocation.stream);
                return;
            }
        }
    }

    private void forgetFreed(Range range) {
        Map.Entry<Long, Block> below = freed.floorEntry(range.from());
        if (below != null && below.getValue().range.overlaps(range)) {
            freed.remove(below.getKey());
        }
        freed.subMap(range.from(), true, range.end(), false).clear();
    }

    /// Records that a stream uses a block until it is freed.
    void recorded(Stream stream, long address) {
        Block block = live.get(address);
        if (block != null) {
            if (block.recorded.isEmpty()) {
                block.recorded = new HashSet<>();
            }
            block.recorded.add(stream);
        }
    }

    /// Records the free of a block on a stream, after the stream's newest work.
    void freed(Stream stream, long address, Place place) {
        Block block = live.remove(address);
        if (block == null) {
            return;
        }
        if (block.isOfGraph || stream.capture != null) {
            return; // the graph keeps it
        }
        if (!isBefore(block.allocation, stream) && !block.recorded.contains(block.allocation.stream)) {
            found.hazard(
                    Kind.USE_BEFORE_ALLOCATION,
                    block.allocation.place,
                    place,
                    block.device,
                    block.range,
                    block.allocation.stream,
                    stream);
        }
        block.uses.removeIf(use -> clocks.isFinished(use.stream, use.number));
        for (Use use : block.uses) {
            if (!isBefore(use, stream) && !block.recorded.contains(use.stream)) {
                found.hazard(
                        Kind.FREE_BEFORE_USE_ENDS, use.place, place, block.device, block.range, use.stream, stream);
            }
        }
        block.free = new Use(block.range, stream, stream.issued(), place);
        block.uses.add(block.free); // also for work that nobody saw
        for (Stream other : block.recorded) {
            block.uses.add(new Use(block.range, other, other.issued(), place));
        }
        freed.put(address, block);
        oldestFreed.add(block);
        forEachPart(
                block.range,
                part -> pieces.computeIfAbsent(part.page, _ -> new TreeMap<>())
                        .put(part.from, new Piece(block, part.from, part.byteSize, part.address)));
        if (oldestFreed.size() > MOST_FREED) {
            forget(oldestFreed.remove());
        }
    }

    private void forget(Block oldest) {
        freed.remove(oldest.range.from(), oldest);
        oldest.uses = List.of();
    }

    /// Records that a page lies at an address.
    void mapped(long address, long byteSize, long page) {
        mappings.put(address, new Mapped(byteSize, page));
    }

    void unmapped(long address, long byteSize) {
        mappings.subMap(address, true, address + byteSize, false).clear();
    }

    /// Records that a page went back to the driver.
    void released(long page) {
        pieces.remove(page);
    }

    /// Records that the driver gave out memory, in whose past it orders all work itself.
    void anew(long address, long byteSize) {
        takePast(new Part(NO_PAGE, address, byteSize, address), null);
        forgetFreed(new Range(address, byteSize, true));
    }

    private void forEachPart(Range range, Consumer<Part> action) {
        for (long at = range.from(); at < range.end(); ) {
            Map.Entry<Long, Mapped> below = mappings.floorEntry(at);
            long end = range.end();
            long page = NO_PAGE;
            long from = at;
            if (below != null && at < below.getKey() + below.getValue().byteSize) {
                end = Math.min(end, below.getKey() + below.getValue().byteSize);
                page = below.getValue().page;
                from = at - below.getKey();
            } else {
                Long next = mappings.higherKey(at);
                end = next == null ? end : Math.min(end, next);
            }
            action.accept(new Part(page, from, end - at, at));
            at = end;
        }
    }
}
