package io.cistern.hazards;

import io.cistern.hazards.StreamClocks.Stream;
import io.cistern.hazards.StreamHazard.Kind;
import io.cistern.hazards.StreamHazard.Place;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The uses of memory: live blocks with their last writes and the reads since, and freed blocks until their memory
/// is reused.
///
/// 1. A use is compared with earlier uses of the same bytes, except those that another use has replaced since. A
///    use that is known to have finished is dropped: no later use can come too early.
/// 2. A freed block keeps its last uses until other blocks lie on its memory. The streams of those blocks
///    must come after these uses. Mapped memory is identified by its place in the physical pages, since an
///    allocator may map one page at several addresses.
/// 3. Memory that the driver orders itself, or reallocates, has no past.
/// 4. Pinned memory of the host is used like a block, by copies and by kernels, and is never reused here.
///
/// Its size is bounded by the live blocks times their streams, and by [#MOST_FREED] freed blocks.
///
/// Guarded by the owner's lock.
final class MemoryUses {
    private static final int MOST_FREED = 1 << 16;

    /// The most uses that are kept of one block. Any more are of many disjoint parts, or finished long ago.
    private static final int MOST_USES = 256;

    /// If more streams than this were recorded for a block, those that have ended and whose work has
    /// finished are removed.
    private static final int MANY_RECORDED = 16;

    interface Found {
        void hazard(Kind kind, Side first, Side second, int device, Range range);
    }

    /// A call, and what it does to the memory: one side of a hazard.
    ///
    /// @param device the device of the stream; for the host, that of the other call
    record Side(Call call, int device, long stream, boolean isWrite, long byteSize) {
        Place place() {
            return call.place(stream, isWrite, byteSize);
        }
    }

    record Use(Range range, Stream stream, long number, Call call, long byteSize) {
        Side side() {
            return new Side(call, stream.device, stream.handle, range.isWritten(), byteSize);
        }
    }

    private static final class Block {
        final Range range;
        final Stream stream;
        final long number;
        final Call allocation;

        /// Whether a captured stream allocated it: launches order its uses.
        final boolean isOfGraph;

        List<Use> uses = List.of();
        Set<Stream> recorded = Set.of();

        @Nullable
        Use free;

        /// Whether it is among the freed blocks by address.
        boolean isFreed;

        /// After its free, the parts of its memory that no other block uses yet.
        @Nullable
        Piece pieces;

        /// @param stream the stream whose newest work is the allocation
        Block(Range range, Stream stream, Call allocation) {
            this.range = range;
            this.stream = stream;
            this.number = stream.issued();
            this.allocation = allocation;
            this.isOfGraph = stream.capture != null;
        }

        int device() {
            return stream.device;
        }

        Side side() {
            return new Side(allocation, stream.device, stream.handle, true, range.byteSize());
        }

        /// Returns the uses as a mutable list.
        List<Use> growing() {
            if (uses.isEmpty()) {
                uses = new ArrayList<>(2);
            }
            return uses;
        }
    }

    private final class Piece {
        final Block block;

        /// Its [place][Mapped].
        long from;

        long byteSize;

        /// Its address while the block was alive.
        long address;

        /// Its neighbours among the block's pieces.
        @Nullable
        Piece before;

        @Nullable
        Piece after;

        Piece(Block block, long from, long byteSize, long address) {
            this.block = block;
            this.from = from;
            this.byteSize = byteSize;
            this.address = address;
        }

        long end() {
            return from + byteSize;
        }

        void enter() {
            past.put(from, this);
            after = block.pieces;
            if (after != null) {
                after.before = this;
            }
            block.pieces = this;
        }

        void leave() {
            past.remove(from);
            if (before == null) {
                block.pieces = after;
            } else {
                before.after = after;
            }
            if (after != null) {
                after.before = before;
            }
            before = null;
            after = null;
        }
    }

    /// Receives the location of a part of a range.
    private interface Part {
        /// @param from its [place][Mapped]
        void lies(long from, long byteSize, long address);
    }

    private record Page(long place, long byteSize) {}

    /// Pages at consecutive addresses and places. Each page has a place above all addresses, the same wherever it is
    /// mapped. The place of memory outside of pages is its address.
    private record Mapped(long address, long byteSize, long place) {
        long end() {
            return address + byteSize;
        }

        long placeOf(long at) {
            return place + (at - address);
        }

        Mapped part(long from, long end) {
            return new Mapped(from, end - from, placeOf(from));
        }
    }

    private record Pinned(Range range, List<Use> uses) {}

    private final StreamClocks clocks;
    private final Found found;
    private final ByAddress<Block> live = new ByAddress<>();
    private final ByAddress<Block> freed = new ByAddress<>();

    /// The freed blocks that are still tracked, the oldest first.
    private final Set<Block> known = new LinkedHashSet<>();

    private final ByAddress<Mapped> mappings = new ByAddress<>();
    private final ByAddress<Pinned> pinned = new ByAddress<>();
    private final Map<Long, Page> pages = new HashMap<>();
    /// Freed pieces by their places; they do not overlap.
    private final ByAddress<Piece> past = new ByAddress<>();
    private long nextPlace = 1L << 62;

    MemoryUses(StreamClocks clocks, Found found) {
        this.clocks = clocks;
        this.found = found;
    }

    /// Checks and records a use by a stream's newest work.
    ///
    /// @param ofGraph whether a launched graph repeats it: memory that graphs keep is not free for it
    void used(Stream stream, Range range, Call call, boolean ofGraph) {
        Block block = at(live, range.from());
        if (block != null) {
            used(block, use(range, block.range, stream, call));
            return;
        }
        Pinned host = pinnedAt(range.from());
        if (host != null) {
            race(host.uses, use(range, host.range, stream, call), stream.device);
            return;
        }
        Block gone = ofGraph ? null : at(freed, range.from());
        if (gone != null && gone.free != null && gone.range.covers(range)) {
            Side use = new Side(call, stream.device, stream.handle, range.isWritten(), range.byteSize());
            found.hazard(Kind.USE_AFTER_FREE, gone.free.side(), use, gone.device(), range);
        }
    }

    /// Returns a use by a stream's newest work of the bytes in a block.
    private static Use use(Range range, Range block, Stream stream, Call call) {
        return new Use(range.before(block.end()), stream, stream.issued(), call, range.byteSize());
    }

    private static @Nullable Block at(ByAddress<Block> blocks, long address) {
        Block below = blocks.floor(address);
        return below != null && address < below.range.end() ? below : null;
    }

    private void used(Block block, Use use) {
        race(block.growing(), use, block.device()); // first: what orders it also orders the allocation
        if (!block.isOfGraph && !clocks.isBefore(block.stream, block.number, use.stream)) {
            found.hazard(Kind.USE_BEFORE_ALLOCATION, block.side(), use.side(), block.device(), use.range);
        }
    }

    /// Compares a use with earlier uses of a block, and keeps those that later uses must follow.
    private void race(List<Use> uses, Use use, int device) {
        int left = 0;
        for (int i = 0; i < uses.size(); i++) {
            Use earlier = uses.get(i);
            boolean isBefore = isBefore(earlier, use.stream);
            if (!isBefore && use.range.conflictsWith(earlier.range)) {
                found.hazard(Kind.RACE, earlier.side(), use.side(), device, use.range);
            }
            boolean isReplaced = isBefore
                    && use.range.covers(earlier.range)
                    && (use.range.isWritten() || (earlier.stream == use.stream && !earlier.range.isWritten()));
            if (!isReplaced && !isFinished(earlier)) {
                uses.set(left++, earlier);
            }
        }
        if (left < uses.size()) {
            uses.subList(left, uses.size()).clear();
        }
        uses.add(use);
        if (uses.size() > MOST_USES) {
            uses.removeFirst();
        }
    }

    /// Checks and records a use that a stream captures, against those of the same capture: a launch repeats them in
    /// their order. Each launch checks it against other work.
    void captured(Capture capture, Stream stream, Range range, Call call) {
        Block block = at(live, range.from());
        Range whole = block == null ? range : block.range;
        capture.uses.add(new Capture.Repeated(range, call));
        race(
                capture.latest.computeIfAbsent(whole.from(), _ -> new ArrayList<>()),
                use(range, whole, stream, call),
                stream.device);
    }

    private boolean isBefore(Use earlier, Stream later) {
        return clocks.isBefore(earlier.stream, earlier.number, later);
    }

    private boolean isFinished(Use use) {
        return clocks.isFinished(use.stream, use.number);
    }

    private @Nullable Pinned pinnedAt(long address) {
        Pinned below = pinned.floor(address);
        return below != null && address < below.range.end() ? below : null;
    }

    /// Records that memory of the host is pinned, so that the GPU copies from and to it asynchronously.
    void pinned(long address, long byteSize) {
        pinned.put(address, new Pinned(new Range(address, byteSize, true), new ArrayList<>(2)));
    }

    void unpinned(long address) {
        pinned.remove(address);
    }

    /// Checks that work on the bytes has finished. The host is about to read or write them.
    void touched(Range range) {
        Block block = at(live, range.from());
        Pinned host = pinnedAt(range.from());
        List<Use> uses = block != null ? block.uses : host != null ? host.uses : List.of();
        for (Use use : uses) {
            if (range.conflictsWith(use.range) && !isFinished(use)) {
                Side touch =
                        new Side(new Call("host"), use.stream.device, Place.HOST, range.isWritten(), range.byteSize());
                found.hazard(Kind.HOST_TOO_EARLY, use.side(), touch, use.stream.device, range);
            }
        }
    }

    /// Records a block whose allocation is a stream's newest work.
    void allocated(Stream stream, long address, long byteSize, Call call) {
        Block block = new Block(new Range(address, byteSize, true), stream, call);
        forEachPart(block.range, (from, bytes, _) -> takePast(from, from + bytes, block));
        forgetFreed(block.range);
        live.put(address, block);
    }

    /// Removes the past of a part of memory, and compares it with an allocation.
    private void takePast(long from, long end, @Nullable Block by) {
        if (past.isEmpty()) {
            return;
        }
        Piece piece = past.floor(from);
        if (piece == null || piece.end() <= from) {
            piece = past.ceiling(from);
        }
        while (piece != null && piece.from < end) {
            long pieceEnd = piece.end();
            takePast(piece, from, end, by);
            piece = pieceEnd < end ? past.ceiling(pieceEnd) : null;
        }
    }

    private void takePast(Piece piece, long from, long end, @Nullable Block by) {
        Block former = piece.block;
        long first = Math.max(piece.from, from);
        long last = Math.min(piece.end(), end);
        long rest = piece.end() - last;
        if (by != null && !by.isOfGraph) {
            compare(former, piece.address + (first - piece.from), last - first, by);
        }
        if (piece.from < first) {
            piece.byteSize = first - piece.from;
        } else {
            piece.leave();
        }
        if (rest > 0) {
            new Piece(former, last, rest, piece.address + (last - piece.from)).enter();
        }
        forgetIfGone(former);
    }

    private void compare(Block former, long address, long byteSize, Block by) {
        for (int i = 0; i < former.uses.size(); i++) {
            Use use = former.uses.get(i);
            boolean overlaps = use.range.from() < address + byteSize && address < use.range.end();
            if (overlaps && !isBefore(use, by.stream)) {
                found.hazard(Kind.REUSED_TOO_EARLY, use.side(), by.side(), former.device(), by.range);
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
            removeFreed(below);
            forgetIfGone(below);
            below = below.range.end() < range.end() ? freed.ceiling(range.from()) : null;
        }
    }

    private void removeFreed(Block block) {
        freed.remove(block.range.from());
        block.isFreed = false;
    }

    private void forgetIfGone(Block block) {
        if (block.pieces == null && !block.isFreed) {
            forget(block);
        }
    }

    void recorded(Stream stream, long address) {
        Block block = live.get(address);
        if (block != null) {
            if (block.recorded.isEmpty()) {
                block.recorded = new HashSet<>();
            }
            if (block.recorded.add(stream) && block.recorded.size() > MANY_RECORDED) {
                block.recorded.removeIf(Stream::isOver);
            }
        }
    }

    /// Records the free of a block on a stream, after the stream's newest work.
    void freed(Stream stream, long address, Call call) {
        Block block = live.remove(address);
        if (block == null) {
            return;
        }
        if (block.isOfGraph || stream.capture != null) {
            return; // the graph keeps it
        }
        Use free = new Use(block.range, stream, stream.issued(), call, block.range.byteSize());
        if (!clocks.isBefore(block.stream, block.number, stream) && !block.recorded.contains(block.stream)) {
            found.hazard(Kind.USE_BEFORE_ALLOCATION, block.side(), free.side(), block.device(), block.range);
        }
        if (block.uses.isEmpty() && block.recorded.isEmpty()) {
            block.uses = List.of(free); // stands for unobserved work, too
        } else {
            compareAndKeep(block, free);
        }
        block.free = free;
        known.add(block);
        freed.put(address, block);
        block.isFreed = true;
        forEachPart(block.range, (from, byteSize, at) -> new Piece(block, from, byteSize, at).enter());
        if (known.size() > MOST_FREED) {
            forget(known.iterator().next());
        }
    }

    /// Compares the uses of a block with its free, and keeps those that have not finished.
    private void compareAndKeep(Block block, Use free) {
        List<Use> uses = block.growing();
        uses.removeIf(this::isFinished);
        for (Use use : uses) {
            if (!isBefore(use, free.stream) && !block.recorded.contains(use.stream)) {
                found.hazard(Kind.FREE_BEFORE_USE_ENDS, use.side(), free.side(), block.device(), block.range);
            }
        }
        uses.add(free); // stands for unobserved work, too
        for (Stream other : block.recorded) {
            uses.add(new Use(block.range, other, other.issued(), free.call, free.byteSize));
        }
    }

    private void forget(Block block) {
        known.remove(block);
        if (block.isFreed) {
            removeFreed(block);
        }
        while (block.pieces != null) {
            block.pieces.leave();
        }
    }

    int freedBlocks() {
        return known.size();
    }

    void mapped(long address, long byteSize, long handle) {
        Page page = pages.get(handle);
        if (page == null || page.byteSize < byteSize) {
            page = new Page(nextPlace, byteSize);
            pages.put(handle, page);
            nextPlace += byteSize;
        }
        unmapped(address, byteSize); // another thread's unmapping may be recorded after this
        long place = page.place;
        Mapped below = mappings.floor(address);
        if (below != null && below.end() == address && below.placeOf(address) == place) {
            put(below.part(below.address, address + byteSize));
        } else {
            put(new Mapped(address, byteSize, place));
        }
    }

    private void put(Mapped mapped) {
        mappings.put(mapped.address, mapped);
    }

    void unmapped(long address, long byteSize) {
        long end = address + byteSize;
        Mapped mapped = mappings.floor(address);
        if (mapped == null || mapped.end() <= address) {
            mapped = mappings.ceiling(address);
        }
        while (mapped != null && mapped.address < end) {
            mappings.remove(mapped.address);
            if (mapped.address < address) {
                put(mapped.part(mapped.address, address));
            }
            if (mapped.end() > end) {
                put(mapped.part(end, mapped.end()));
            }
            mapped = mappings.ceiling(address);
        }
    }

    void released(long handle) {
        Page gone = pages.remove(handle);
        if (gone != null) {
            takePast(gone.place, gone.place + gone.byteSize, null);
        }
    }

    /// Records that the driver allocated memory. The driver itself orders all earlier work on that memory.
    void anew(long address, long byteSize) {
        takePast(address, address + byteSize, null);
        forgetFreed(new Range(address, byteSize, true));
    }

    private void forEachPart(Range range, Part action) {
        for (long at = range.from(); at < range.end(); ) {
            Mapped below = mappings.floor(at);
            long end = range.end();
            if (below != null && at < below.end()) {
                end = Math.min(end, below.end());
                action.lies(below.placeOf(at), end - at, at);
            } else {
                Mapped next = mappings.ceiling(at);
                end = next == null ? end : Math.min(end, next.address);
                action.lies(at, end - at, at);
            }
            at = end;
        }
    }
}
