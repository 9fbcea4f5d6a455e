package io.cistern.nccl;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.stream.Collectors;

/// Blocks of one segment by first fit: each lies at the lowest offset with room, whatever stream it is for and
/// whether or not work on it has finished. So offsets depend on the sequence of sizes, frees and captures alone.
///
/// ```
/// offset   0          4 KiB      6 KiB           10 KiB                    end
///          | live     | free     | live          | free                      |
///                       last: stream a             last: streams a, b
/// ```
///
/// **Stream order.** A free range remembers whose work may still use it: streams, or for those that ended a
/// fence. Who gets a block there is made to wait for them on the device. A stream that has waited for many
/// stands for them in what is left of the range: with a thousand streams, each block would else wait for all.
///
/// **Captures.** Nobody can be made to wait for what a captured stream did before its capture. So while captures
/// are under way, what their streams used last serves nobody.
///
/// **Invariant** ([#checkInvariants]): free ranges don't touch, and live and free bytes make up the segment.
///
/// **Threading.** One lock, under which fences are recorded when a block changes streams.
final class SymmetricArena {
    /// Sizes and offsets are multiples of this; NCCL is at its best from 16 bytes on, blocks in general from 256.
    static final long UNIT = 512;

    /// So many streams can use parts of a range in turns without waiting for each other's later work.
    private static final int MAX_USES = 4;

    /// What an arena answers whose segment has gone: there may be another one.
    static final long RETIRED = -1;

    private static final long PER_THREAD = Streams.PER_THREAD_DEFAULT;

    /// In place of a stream that can't be named any more: all of them.
    private static final long GONE = -1;

    /// Whose work may still use a range: a stream, or what it had done when it ended.
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
    private final UnfinishedFrees unfinished = new UnfinishedFrees();
    private final UnfinishedFrees.Freeing freeing = this::putBack;
    private boolean retired;

    SymmetricArena(Segment segment, StreamOrder order) {
        this.segment = segment;
        this.order = order;
        free.put(0L, new Free(segment.byteSize() / UNIT * UNIT, Set.of()));
    }

    Segment segment() {
        return segment;
    }

    boolean contains(long address) {
        return address >= segment.address() && address < segment.address() + segment.byteSize();
    }

    /// Allocates.
    ///
    /// @return the address, 0 if there is no room, or [#RETIRED]
    synchronized long allocate(long byteSize, long stream) {
        if (retired) {
            return RETIRED;
        }
        unfinished.finish(freeing);
        unfinished.makeRoomFor(live.size() + 1);
        long size = rounded(byteSize);
        for (Map.Entry<Long, Free> range : free.entrySet()) {
            if (range.getValue().byteSize >= size && follows(stream, range.getValue().last)) {
                return take(range.getKey(), range.getValue(), size, stream);
            }
        }
        return 0;
    }

    /// Makes a stream wait for all that may still use a range.
    ///
    /// @return whether that is possible beside the captures under way
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

    /// Where the Java heap is full, the range stays as it is until a later call.
    synchronized void free(long address, long byteSize, long stream) {
        long offset = address - segment.address();
        try {
            unfinished.finish(freeing);
            putBack(offset, byteSize, stream);
        } catch (OutOfMemoryError full) {
            unfinished.add(offset, byteSize, stream == PER_THREAD ? GONE : stream);
        }
    }

    /// All that needs Java heap comes before the first change.
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

    /// The default stream of a thread is named only by that thread, so its fence is taken at once.
    private Set<Use> uses(long stream) {
        return stream == PER_THREAD || stream == GONE ? ended(stream) : Set.of(new Use(key(stream), 0));
    }

    private Set<Use> ended(long stream) {
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

    /// 0 and 1 are both the legacy default stream.
    private static long key(long stream) {
        return Math.max(stream, 1);
    }

    /// Takes the fence of a stream that ends, and forgets those that have passed.
    synchronized void streamClosing(long stream) {
        unfinished.finish(freeing);
        Use ending = new Use(key(stream), 0);
        if (free.values().stream().anyMatch(range -> range.last.contains(ending))) {
            Set<Use> ended = ended(ending.stream);
            renew(use -> use.equals(ending) ? ended : Set.of(use));
        }
        Set<Long> passed = fences.stream()
                .filter(fence -> order.passed(segment.device(), fence))
                .collect(Collectors.toSet());
        renew(use -> passed.contains(use.fence) ? Set.of() : Set.of(use));
        fences.removeAll(passed);
        passed.forEach(fence -> order.release(segment.device(), fence));
    }

    /// Puts others in place of uses.
    private void renew(Function<Use, Set<Use>> change) {
        free.replaceAll((_, range) -> new Free(
                range.byteSize,
                range.last.stream().map(change).flatMap(Set::stream).collect(Collectors.toUnmodifiableSet())));
    }

    private static long rounded(long byteSize) {
        return (byteSize + UNIT - 1) / UNIT * UNIT;
    }

    /// Gives the segment back if it is idle and its source takes it.
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

    /// Does something with the fence of a use, which is taken for that alone while the stream exists.
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
    }

    /// Waits for all that may still use the segment; no block is live.
    synchronized void close() {
        try {
            DeadContext.survive(() -> free.values().forEach(range -> range.last.forEach(this::synchronize)));
        } finally {
            releaseFences();
        }
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
