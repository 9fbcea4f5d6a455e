package io.cistern.hazards;

import io.cistern.hazards.StreamClocks.Stream;
import io.cistern.hazards.StreamHazard.Kind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
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

    /// Receives what is found.
    interface Found {
        void hazard(Kind kind, Call first, Call second, int device, Range range, Stream earlier, Stream later);
    }

    record Use(Range range, Stream stream, long number, Call place) {}

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

        /// Parts of its memory that serve no other block yet, after its free.
        int pieces;

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

    /// The freed pieces in a page by where they lie; they do not overlap.
    private static final class Page {
        final ByAddress<Piece> pieces = new ByAddress<>();
    }

    /// Where a range lies.
    private record Part(Page page, long from, long byteSize, long address) {
        long end() {
            return from + byteSize;
        }
    }

    private record Mapped(long address, long byteSize, Page page) {
        long end() {
            return address + byteSize;
        }
    }

    private static final class Pinned {
        final Range range;
        final List<Use> uses = new ArrayList<>(2);

        Pinned(Range range) {
            this.range = range;
        }
    }

    private final StreamClocks clocks;
    private final Found found;
    private final ByAddress<Block> live = new ByAddress<>();
    private final ByAddress<Block> freed = new ByAddress<>();
    /// The freed blocks that are still known, the oldest first.
    private final Set<Block> oldestFreed = new LinkedHashSet<>();
    private final ByAddress<Mapped> mappings = new ByAddress<>();
    /// Pinned memory of the host.
    private final ByAddress<Pinned> pinned = new ByAddress<>();
    /// Pages that have been mapped, by handle.
    private final Map<Long, Page> pages = new HashMap<>();
    /// Freed pieces outside of pages, by address.
    private final Page unpaged = new Page();

    MemoryUses(StreamClocks clocks, Found found) {
        this.clocks = clocks;
        this.found = found;
    }

    /// Checks and records a use by a stream's newest work.
    ///
    /// @param ofGraph whether a launched graph repeats it: memory that graphs keep is not free for it
    void used(Stream stream, Range range, Call place, boolean ofGraph) {
        Block block = at(live, range.from());
        if (block != null) {
            used(block, new Use(clipped(range, block.range), stream, stream.issued(), place));
            return;
        }
        Pinned host = pinnedAt(range.from());
        if (host != null) {
            race(host.uses, new Use(clipped(range, host.range), stream, stream.issued(), place), stream.device);
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

    private static @Nullable Block at(ByAddress<Block> blocks, long address) {
        Block below = blocks.floor(address);
        return below != null && address < below.range.end() ? below : null;
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
        race(block.uses, use, block.device);
    }

    /// Compares a use with earlier ones of a block, and leaves those that later ones must come after.
    private void race(List<Use> uses, Use use, int device) {
        int left = 0;
        for (int i = 0; i < uses.size(); i++) {
            Use earlier = uses.get(i);
            boolean isBefore = isBefore(earlier, use.stream);
            if (!isBefore && use.range.conflictsWith(earlier.range)) {
                found.hazard(Kind.RACE, earlier.place, use.place, device, use.range, earlier.stream, use.stream);
            }
            boolean isReplaced = isBefore
                    && use.range.covers(earlier.range)
                    && (use.range.isWritten() || (earlier.stream == use.stream && !earlier.range.isWritten()));
            if (!isReplaced && !clocks.isFinished(earlier.stream, earlier.number)) {
                uses.set(left++, earlier);
            }
        }
        uses.subList(left, uses.size()).clear();
        uses.add(use);
        if (uses.size() > MOST_USES) {
            uses.removeFirst();
        }
    }

    /// Checks and records a use that a stream captures, against those of the same capture: a launch repeats them in
    /// their order. Each launch checks it against other work.
    void captured(Capture capture, Stream stream, Range range, Call place) {
        Block block = at(live, range.from());
        Range ofBlock = block == null ? range : clipped(range, block.range);
        capture.uses.add(new Capture.Repeated(range, place));
        race(
                capture.latest.computeIfAbsent(
                        block == null ? range.from() : block.range.from(), _ -> new ArrayList<>()),
                new Use(ofBlock, stream, stream.issued(), place),
                stream.device);
    }

    private boolean isBefore(Use earlier, Stream later) {
        return clocks.isBefore(earlier.stream, earlier.number, later);
    }

    private @Nullable Pinned pinnedAt(long address) {
        Pinned below = pinned.floor(address);
        return below != null && address < below.range.end() ? below : null;
    }

    /// Records that the GPU copies from and to some memory of the host in its own time.
    void pinned(long address, long byteSize) {
        pinned.put(address, new Pinned(new Range(address, byteSize, true)));
    }

    void unpinned(long address) {
        pinned.remove(address);
    }

    /// Checks that work on the bytes has finished before the host reads or writes them.
    void touched(Range range, Call place) {
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
    void allocated(Stream stream, long address, long byteSize, Call place) {
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
        ByAddress<Piece> past = part.page.pieces;
        if (past.isEmpty()) {
            return;
        }
        Piece piece = past.floor(part.from);
        if (piece == null || piece.end() <= part.from) {
            piece = past.ceiling(part.from);
        }
        while (piece != null && piece.from < part.end()) {
            long end = piece.end();
            takePast(past, piece, part.from, part.end(), allocation);
            piece = past.ceiling(end);
        }
    }

    private void takePast(ByAddress<Piece> past, Piece piece, long from, long end, @Nullable Use allocation) {
        past.remove(piece.from);
        piece.block.pieces--;
        long first = Math.max(piece.from, from);
        long last = Math.min(piece.end(), end);
        if (allocation != null) {
            compare(piece.block, new Range(piece.address + (first - piece.from), last - first, true), allocation);
        }
        if (piece.from < first) {
            put(past, new Piece(piece.block, piece.from, first - piece.from, piece.address));
        }
        if (last < piece.end()) {
            put(past, new Piece(piece.block, last, piece.end() - last, piece.address + (last - piece.from)));
        }
        forgetIfGone(piece.block);
    }

    private static void put(ByAddress<Piece> past, Piece piece) {
        past.put(piece.from, piece);
        piece.block.pieces++;
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
        Block below = at(freed, range.from());
        if (below == null) {
            below = freed.ceiling(range.from());
        }
        while (below != null && below.range.from() < range.end()) {
            freed.remove(below.range.from());
            forgetIfGone(below);
            below = freed.ceiling(range.from());
        }
    }

    private void forgetIfGone(Block block) {
        if (block.pieces == 0 && freed.get(block.range.from()) != block) {
            oldestFreed.remove(block);
        }
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
    void freed(Stream stream, long address, Call place) {
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
                block.range, part -> put(part.page.pieces, new Piece(block, part.from, part.byteSize, part.address)));
        if (oldestFreed.size() > MOST_FREED) {
            forget(oldestFreed.iterator().next());
        }
    }

    private void forget(Block oldest) {
        oldestFreed.remove(oldest);
        if (freed.get(oldest.range.from()) == oldest) {
            freed.remove(oldest.range.from());
        }
        oldest.uses = List.of();
    }

    /// Records that a page lies at an address.
    void mapped(long address, long byteSize, long page) {
        mappings.put(address, new Mapped(address, byteSize, pages.computeIfAbsent(page, _ -> new Page())));
    }

    void unmapped(long address, long byteSize) {
        Mapped mapped = mappings.ceiling(address);
        while (mapped != null && mapped.address < address + byteSize) {
            mappings.remove(mapped.address);
            mapped = mappings.ceiling(address);
        }
    }

    /// Records that a page went back to the driver.
    void released(long page) {
        Page gone = pages.remove(page);
        if (gone != null) {
            takePast(new Part(gone, 0, Long.MAX_VALUE, 0), null);
        }
    }

    /// Records that the driver gave out memory, in whose past it orders all work itself.
    void anew(long address, long byteSize) {
        takePast(new Part(unpaged, address, byteSize, address), null);
        forgetFreed(new Range(address, byteSize, true));
    }

    private void forEachPart(Range range, Consumer<Part> action) {
        for (long at = range.from(); at < range.end(); ) {
            Mapped below = mappings.floor(at);
            long end = range.end();
            if (below != null && at < below.end()) {
                end = Math.min(end, below.end());
                action.accept(new Part(below.page, at - below.address, end - at, at));
            } else {
                Mapped next = mappings.ceiling(at);
                end = next == null ? end : Math.min(end, next.address);
                action.accept(new Part(unpaged, at, end - at, at));
            }
            at = end;
        }
    }
}
