package io.cistern.nccl.internal.symmetric;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.internal.names.Failures;
import io.cistern.internal.order.EndedStreams;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.stream.Collectors;

/// Allocates blocks of one segment by first fit: each block lies at the lowest offset with room, whatever its
/// stream, even if work there has not finished. So offsets depend only on the sequence of sizes, frees and
/// captures.
///
/// ```
/// offset   0          4 KiB      6 KiB           10 KiB                    end
///          | live     | free     | live          | free                      |
///                       last: stream a             last: streams a, b
/// ```
///
/// **Stream order.** A free range remembers whose work may still use it: streams or, for ended streams, a
/// fence. A stream that gets a block there is made to wait for them on the device. A stream that has waited for
/// many others takes their place in the rest of the range. Otherwise, with a thousand streams, each block would
/// wait for all of them.
///
/// **Captures.** No stream can be made to wait for work that a captured stream did before its capture. So while
/// captures are under way, ranges that their streams used last serve no allocation.
///
/// **Invariant** ([#checkInvariants]): free ranges don't touch, and live and free bytes add up to the segment.
///
/// **Threads.** One lock; it is held while fences are recorded when a block changes streams.
final class SymmetricArena {
    /// The unit of sizes and offsets. NCCL performs best with an alignment of at least 16 bytes; every block is
    /// aligned to at least 256.
    static final long UNIT = 512;

    /// This many streams can use parts of a range in turn without waiting for each other's later work.
    private static final int MAX_USES = 4;

    /// With fewer fences than this, unneeded ones are not looked for.
    private static final int FEW_FENCES = 64;

    /// The answer of an arena whose segment has gone; there may be another arena.
    static final long RETIRED = -1;

    private static final long PER_THREAD = Streams.PER_THREAD_DEFAULT;

    /// Stands for a stream that can't be named any more, and means all streams.
    private static final long GONE = -1;

    /// Work that may still use a range: that of a stream, or the work of an ended stream up to its end.
    ///
    /// @param fence 0 while the stream exists
    private record Use(long stream, long fence) {}

    private static final Set<Use> NONE = Set.of();

    private record Free(long byteSize, Set<Use> last) {}

    private final Segment segment;
    private final StreamOrder order;
    private final TreeMap<Long, Free> free = new TreeMap<>();
    private final Map<Long, Long> live = new TreeMap<>();
    private final List<Long> fences = new ArrayList<>();
    private int manyFences = FEW_FENCES;
    private final EndedStreams ended;
    private final UnfinishedFrees unfinished = new UnfinishedFrees();
    private final UnfinishedFrees.Freeing freeing = this::putBack;
    private final Failures failures = new Failures();
    private boolean retired;

    SymmetricArena(Segment segment, StreamOrder order) {
        this.segment = segment;
        this.order = order;
        this.ended = new EndedStreams(segment.device(), order);
        free.put(0L, new Free(segment.byteSize() / UNIT * UNIT, Set.of()));
    }

    Segment segment() {
        return segment;
    }

    boolean contains(long address) {
        return address >= segment.address() && address < segment.address() + segment.byteSize();
    }

    /// Allocates a block.
    ///
    /// @return the address, 0 if there is no room, or [#RETIRED]
    synchronized long allocate(long byteSize, long stream) {
        if (retired) {
            return RETIRED;
        }
        unfinished.finish(freeing);
        unfinished.makeRoomFor(live.size() + 1);
        ended.opened(stream);
        long size = rounded(byteSize);
        for (Map.Entry<Long, Free> range : free.entrySet()) {
            if (range.getValue().byteSize >= size && follows(stream, range.getValue().last)) {
                return take(range.getKey(), range.getValue(), size, stream);
            }
        }
        return 0;
    }

    /// Makes a stream wait for all work that may still use a range.
    ///
    /// @return false if a capture under way forbids it
    private boolean follows(long stream, Set<Use> last) {
        try {
            for (Use use : last) {
                await(use, stream);
            }
            return true;
        } catch (CudaException refusal) {
            if (refusal.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                return false;
            }
            throw refusal;
        }
    }

    private void await(Use use, long stream) {
        if (use.fence != 0 || use.stream != key(stream)) {
            withFence(use, fence -> order.await(segment.device(), stream, fence));
        }
    }

    private long take(long offset, Free range, long size, long stream) {
        Long taken = offset;
        Set<Use> last = range.last.size() > MAX_USES ? uses(stream) : range.last;
        live.put(taken, size);
        if (range.byteSize > size) {
            try {
                free.put(offset + size, new Free(range.byteSize - size, last));
            } catch (OutOfMemoryError full) {
                live.remove(taken);
                throw full;
            }
        }
        free.remove(taken);
        return segment.address() + offset;
    }

    /// Frees a block. If the Java heap is full, a later call does it.
    synchronized void free(long address, long byteSize, long stream) {
        long offset = address - segment.address();
        long last = ended.contains(stream) ? GONE : stream;
        try {
            unfinished.finish(freeing);
            putBack(offset, byteSize, last);
        } catch (OutOfMemoryError full) {
            unfinished.add(offset, byteSize, last == PER_THREAD ? GONE : last);
        }
    }

    /// Adds a range to the free ones. Everything that needs Java heap comes before the first change.
    private void putBack(long offset, long byteSize, long stream) {
        Long block = offset;
        Long behind = offset + rounded(byteSize);
        Set<Use> last = new HashSet<>(uses(stream));
        Long from = block;
        long to = behind;
        Map.Entry<Long, Free> before = free.lowerEntry(block);
        if (before != null && before.getKey() + before.getValue().byteSize == offset) {
            from = before.getKey();
            last.addAll(before.getValue().last);
        }
        Free after = free.get(behind);
        if (after != null) {
            to += after.byteSize;
            last.addAll(after.last);
        }
        free.put(from, new Free(to - from, Set.copyOf(last)));
        free.remove(behind);
        live.remove(block);
    }

    /// Returns the uses of a stream. Only a thread itself can name its own default stream, so its fence is
    /// recorded at once.
    private Set<Use> uses(long stream) {
        return stream == PER_THREAD || stream == GONE ? fenced(stream) : Set.of(new Use(key(stream), 0));
    }

    private Set<Use> fenced(long stream) {
        if (fences.size() >= manyFences) {
            releaseUnneeded();
            manyFences = Math.max(FEW_FENCES, 2 * fences.size());
        }
        long fence = stream == GONE ? order.recordAll(segment.device()) : order.record(segment.device(), stream);
        if (fence == 0) {
            return NONE;
        }
        try {
            fences.add(fence);
        } catch (OutOfMemoryError full) {
            order.release(segment.device(), fence);
            throw full;
        }
        return Set.of(new Use(stream, fence));
    }

    private void releaseUnneeded() {
        Set<Long> needed = free.values().stream()
                .flatMap(range -> range.last.stream())
                .map(Use::fence)
                .collect(Collectors.toSet());
        for (Iterator<Long> all = fences.iterator(); all.hasNext(); ) {
            long fence = all.next();
            if (!needed.contains(fence)) {
                all.remove();
                order.release(segment.device(), fence);
            }
        }
    }

    /// Returns one number for the legacy default stream, which has 0 and 1.
    private static long key(long stream) {
        return Math.max(stream, 1);
    }

    /// Records the fence of a stream that ends, and forgets fences that have passed.
    synchronized void streamClosing(long stream) {
        if (retired) {
            return;
        }
        unfinished.finish(freeing);
        Use ending = new Use(key(stream), 0);
        if (free.values().stream().anyMatch(range -> range.last.contains(ending))) {
            Set<Use> end = fenced(ending.stream);
            renew(use -> use.equals(ending) ? end : Set.of(use));
        }
        Set<Long> passed = fences.stream()
                .filter(fence -> order.passed(segment.device(), fence))
                .collect(Collectors.toSet());
        renew(use -> passed.contains(use.fence) ? Set.of() : Set.of(use));
        fences.removeIf(fence -> passed.contains(fence) && isReleased(fence));
        ended.closing(stream);
    }

    private boolean isReleased(long fence) {
        order.release(segment.device(), fence);
        return true;
    }

    /// Replaces each use by the uses that `change` returns.
    private void renew(Function<Use, Set<Use>> change) {
        free.replaceAll((_, range) -> new Free(
                range.byteSize,
                range.last.stream().map(change).flatMap(Set::stream).collect(Collectors.toUnmodifiableSet())));
    }

    private static long rounded(long byteSize) {
        return (byteSize + UNIT - 1) / UNIT * UNIT;
    }

    /// Gives the segment back if it is idle and its source accepts it.
    synchronized boolean tryRetire(RangeSource source) {
        unfinished.finish(freeing);
        if (!retired && live.isEmpty() && isQuiet()) {
            retired = source.tryRelease(segment);
            if (retired) {
                releaseFences();
            }
        }
        return retired;
    }

    synchronized boolean isRetired() {
        return retired;
    }

    private boolean isQuiet() {
        return free.values().stream().flatMap(range -> range.last.stream()).allMatch(this::isPast);
    }

    private boolean isPast(Use use) {
        boolean[] passed = {false};
        withFence(use, fence -> passed[0] = order.passed(segment.device(), fence));
        return passed[0];
    }

    /// Passes the fence of a use to an action; while the stream exists, the fence is recorded only for that.
    private void withFence(Use use, LongConsumer action) {
        long fence = use.fence != 0 ? use.fence : order.record(segment.device(), use.stream);
        try {
            action.accept(fence);
        } finally {
            if (use.fence == 0) {
                order.release(segment.device(), fence);
            }
        }
    }

    private void releaseFences() {
        fences.forEach(fence -> order.release(segment.device(), fence));
        fences.clear();
        ended.close();
    }

    /// Waits for all work that may still use the segment, which its source takes back; no block is live.
    ///
    /// @throws CudaException if a capture forbids it; then the arena is as before
    synchronized void close() {
        if (retired) {
            return;
        }
        failures.gatherUnlessCaptured(() -> DeadContext.survive(this::synchronize));
        retired = true;
        releaseFences();
        failures.rethrow();
    }

    private void synchronize() {
        free.values().forEach(range -> range.last.forEach(this::synchronize));
    }

    private void synchronize(Use use) {
        withFence(use, fence -> order.synchronize(segment.device(), fence));
    }

    /// Checks the invariant.
    ///
    /// @throws IllegalStateException if it does not hold
    synchronized void checkInvariants() {
        long bytes = live.values().stream().mapToLong(Long::longValue).sum();
        long end = -1;
        for (Map.Entry<Long, Free> range : free.entrySet()) {
            if (range.getKey() <= end) {
                throw new IllegalStateException("free ranges touch or overlap at offset " + range.getKey());
            }
            end = range.getKey() + range.getValue().byteSize;
            bytes += range.getValue().byteSize;
        }
        if (bytes != segment.byteSize() / UNIT * UNIT) {
            throw new IllegalStateException(bytes + " bytes are live or free, not " + segment.byteSize());
        }
    }
}
