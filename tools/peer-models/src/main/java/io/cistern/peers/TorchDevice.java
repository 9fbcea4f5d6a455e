package io.cistern.peers;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.diagnostics.SegmentMemory.Block;
import io.cistern.diagnostics.SegmentMemory.State;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.EventSink;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// PyTorch's caching allocator on one device, after its source (2.9 to 2.11), with its usual settings:
///
/// 1. Sizes are multiples of 512 bytes. Requests of at most `1 MiB` are small, and have a pool of their own.
/// 2. The smallest free block of the stream that is large enough serves. The rest is split off: at least 512
///    bytes of a small block or of a segment that grows, more than `1 MiB` of a large block.
/// 3. Otherwise a segment comes from the driver: of `2 MiB` for small requests, of `20 MiB` for those below
///    `10 MiB`, else of the size rounded up to `2 MiB`. Or a segment that grows gets pages, of `2 MiB` or `20 MiB`,
///    at the lowest address that has room.
/// 4. If the driver refuses, all segments without a block, or all free pages, go back to it; then once more.
///
/// Of equal blocks the one with the lowest address serves, so segments lie where a GPU's driver would put them:
/// [DriverAddresses].
///
/// Not modelled: pools of graphs, settings, and the wait until another stream's use is over; that is waited for as a
/// free on another stream is.
final class TorchDevice {
    private static final long UNIT = 512;
    private static final long MIB = 1L << 20;
    private static final long SMALL = MIB;
    private static final long SMALL_SEGMENT = 2 * MIB;
    private static final long LARGE_SEGMENT = 20 * MIB;
    private static final long OWN_SEGMENT = 10 * MIB;

    private final CudaDriver driver;
    private final StreamOrder order;
    private final EventSink events;
    private final int device;
    private final boolean isExpandable;
    private final TorchPool small = new TorchPool(true);
    private final TorchPool large = new TorchPool(false);
    private final Map<Long, TorchBlock> taken = new HashMap<>();
    private final DriverAddresses addresses = new DriverAddresses();
    private final List<Waiting> waiting = new ArrayList<>();
    private long reservedBytes;
    private long peakBytes;

    /// A freed block that another stream may still use.
    private record Waiting(TorchBlock block, long fence) {}

    TorchDevice(CudaDriver driver, StreamOrder order, EventSink events, int device, boolean isExpandable) {
        this.driver = driver;
        this.order = order;
        this.events = events;
        this.device = device;
        this.isExpandable = isExpandable;
    }

    synchronized long allocate(long requestedBytes, long stream) {
        freeWaiting(false);
        long byteSize = Math.ceilDiv(requestedBytes, UNIT) * UNIT;
        TorchPool pool = byteSize <= SMALL ? small : large;
        TorchBlock block = find(pool, byteSize, stream);
        if (block == null) {
            block = obtain(pool, byteSize, stream);
        }
        if (block == null) {
            release();
            block = obtain(pool, byteSize, stream);
        }
        if (block == null) {
            throw new DeviceOutOfMemoryException(
                    requestedBytes, device, "PyTorch's allocator holds " + reservedBytes + " bytes");
        }
        split(block, byteSize);
        block.isTaken = true;
        taken.put(block.deviceAddress(), block);
        return block.deviceAddress();
    }

    /// Takes the free block that fits best. A block at the end of what a segment has counts as large as it can grow,
    /// so it comes last.
    private @Nullable TorchBlock find(TorchPool pool, long byteSize, long stream) {
        TorchBlock found = pool.free().ceiling(new TorchBlock(pool, stream, null, 0, 0, byteSize));
        if (found == null || found.stream != stream) {
            return null;
        }
        for (TorchBlock next = isExpandable ? pool.free().higher(found) : null;
                next != null && next.stream == stream && next.growableBytes() < found.growableBytes();
                next = pool.free().higher(found)) {
            found = next;
        }
        pool.free().remove(found);
        return found;
    }

    private void split(TorchBlock block, long byteSize) {
        long rest = block.byteSize - byteSize;
        boolean splitsFinely = block.pool.isSmall() || isExpandable;
        if (splitsFinely ? rest < UNIT : rest <= SMALL) {
            return;
        }
        TorchBlock remaining = block.part(block.address + byteSize, rest);
        remaining.insert(block, block.next);
        block.byteSize = byteSize;
        block.pool.free().add(remaining);
    }

    private @Nullable TorchBlock obtain(TorchPool pool, long byteSize, long stream) {
        return isExpandable ? grow(pool, byteSize, stream) : segment(pool, byteSize, stream);
    }

    private @Nullable TorchBlock segment(TorchPool pool, long byteSize, long stream) {
        long segmentBytes = byteSize <= SMALL
                ? SMALL_SEGMENT
                : byteSize < OWN_SEGMENT ? LARGE_SEGMENT : Math.ceilDiv(byteSize, 2 * MIB) * 2 * MIB;
        try {
            long deviceAddress = driver.memory().allocate(device, segmentBytes);
            reserved(deviceAddress, segmentBytes, true);
            long address = addresses.place(segmentBytes);
            return new TorchBlock(pool, stream, null, deviceAddress - address, address, segmentBytes);
        } catch (CudaException failure) {
            if (failure.result() != CudaResult.OUT_OF_MEMORY) {
                throw failure;
            }
            return null;
        }
    }

    /// Grows a segment until it has a free block of a size.
    private @Nullable TorchBlock grow(TorchPool pool, long byteSize, long stream) {
        TorchBlock candidate = place(pool, byteSize, stream);
        if (!candidate.isMapped && !map(candidate, Math.min(candidate.byteSize, byteSize))) {
            return null;
        }
        while (candidate.byteSize < byteSize) {
            TorchBlock next = candidate.next;
            if (next == null || !map(next, Math.min(byteSize - candidate.byteSize, next.byteSize))) {
                return null;
            }
            candidate = next; // It took the candidate in.
        }
        pool.free().remove(candidate);
        return candidate;
    }

    /// Returns the free block or range of addresses from which on there is room, at the lowest address.
    private TorchBlock place(TorchPool pool, long byteSize, long stream) {
        TorchBlock from = new TorchBlock(pool, stream, null, 0, 0, 0);
        for (TorchBlock range : pool.unmapped().tailSet(from)) {
            if (range.stream != stream) {
                break;
            }
            TorchBlock first = range.previous != null && !range.previous.isTaken ? range.previous : range;
            long room = 0;
            for (TorchBlock each = first; each != null && !each.isTaken && room < byteSize; each = each.next) {
                room += each.byteSize;
            }
            if (room >= byteSize) {
                return first;
            }
        }
        TorchSegment segment = TorchSegment.reserve(driver, device, pool.isSmall() ? SMALL_SEGMENT : LARGE_SEGMENT);
        TorchBlock all = new TorchBlock(pool, stream, segment, 0, segment.address(), segment.byteSize());
        all.isMapped = false;
        pool.unmapped().add(all);
        return all;
    }

    /// Gives memory to the beginning of a range of addresses, which becomes a free block.
    private boolean map(TorchBlock range, long byteSize) {
        TorchSegment segment = Objects.requireNonNull(range.segment);
        long mapped = segment.map(range.address, byteSize);
        if (mapped == 0) {
            return false;
        }
        TorchPool pool = range.pool;
        pool.unmapped().remove(range);
        if (mapped < range.byteSize) {
            TorchBlock rest = range.part(range.address + mapped, range.byteSize - mapped);
            rest.isMapped = false;
            rest.insert(range, range.next);
            pool.unmapped().add(rest);
            range.byteSize = mapped;
        }
        reserved(range.address, mapped, true);
        range.isMapped = true;
        range.merge(range.previous);
        range.merge(range.next);
        pool.free().add(range);
        return true;
    }

    private void reserved(long address, long byteSize, boolean isMore) {
        reservedBytes += isMore ? byteSize : -byteSize;
        peakBytes = Math.max(peakBytes, reservedBytes);
        events.reservedChanged(device, isMore ? byteSize : -byteSize);
        if (isMore) {
            events.segmentAcquired(device, address, byteSize);
        } else {
            events.segmentReleased(device, address, byteSize);
        }
    }

    synchronized void free(long address, long stream) {
        TorchBlock block = Objects.requireNonNull(taken.remove(address));
        if (stream == block.stream) {
            free(block);
        } else {
            waiting.add(new Waiting(block, order.record(device, stream)));
        }
    }

    private void free(TorchBlock block) {
        block.isTaken = false;
        block.merge(block.previous);
        block.merge(block.next);
        block.pool.free().add(block);
    }

    /// Frees the blocks that no other stream uses any more.
    ///
    /// @param waits whether to wait for those that still do
    private void freeWaiting(boolean waits) {
        for (Iterator<Waiting> each = waiting.iterator(); each.hasNext(); ) {
            Waiting next = each.next();
            if (waits) {
                order.synchronize(device, next.fence);
            }
            if (waits || order.passed(device, next.fence)) {
                order.release(device, next.fence);
                each.remove();
                free(next.block);
            }
        }
    }

    /// Gives the driver all that no block needs.
    ///
    /// @return bytes given back
    synchronized long release() {
        long before = reservedBytes;
        freeWaiting(true);
        driver.devices().synchronize(device); // A stream that used a page may have ended.
        release(large);
        release(small);
        return before - reservedBytes;
    }

    private void release(TorchPool pool) {
        for (TorchBlock block : List.copyOf(pool.free())) {
            if (block.segment != null) {
                unmap(block, block.segment);
            } else if (block.isAlone()) {
                driver.memory().free(device, block.deviceAddress());
                addresses.giveBack(block.address, block.byteSize);
                pool.free().remove(block);
                reserved(block.deviceAddress(), block.byteSize, false);
            }
        }
    }

    private void unmap(TorchBlock block, TorchSegment segment) {
        long first = segment.firstPage(block.address);
        long last = segment.lastPage(block.address + block.byteSize);
        if (first >= last) {
            return;
        }
        segment.unmap(first, last);
        TorchPool pool = block.pool;
        pool.free().remove(block);
        if (first > block.address) {
            TorchBlock before = block.part(block.address, first - block.address);
            before.insert(block.previous, block);
            pool.free().add(before);
        }
        long end = block.address + block.byteSize;
        if (end > last) {
            TorchBlock after = block.part(last, end - last);
            after.insert(block, block.next);
            pool.free().add(after);
        }
        block.address = first;
        block.byteSize = last - first;
        block.isMapped = false;
        reserved(first, last - first, false);
        block.merge(block.previous);
        block.merge(block.next);
        if (block.isAlone()) {
            segment.free();
        } else {
            pool.unmapped().add(block);
        }
    }

    synchronized long reservedBytes() {
        return reservedBytes;
    }

    synchronized long peakBytes() {
        return peakBytes;
    }

    synchronized void resetPeak() {
        peakBytes = reservedBytes;
    }

    /// Returns the ranges that have memory, with their blocks.
    synchronized List<SegmentMemory> segments() {
        Map<Long, TorchBlock> firsts = new TreeMap<>();
        taken.values().forEach(block -> putFirst(block, firsts));
        waiting.forEach(each -> putFirst(each.block, firsts));
        small.free().forEach(block -> putFirst(block, firsts));
        large.free().forEach(block -> putFirst(block, firsts));
        List<SegmentMemory> segments = new ArrayList<>();
        for (TorchBlock first : firsts.values()) {
            List<Block> blocks = new ArrayList<>();
            long bytes = 0;
            for (TorchBlock each = first; each != null && each.isMapped; each = each.next) {
                State state = taken.containsKey(each.deviceAddress())
                        ? State.TAKEN
                        : each.isTaken ? State.WAITING : State.IDLE;
                blocks.add(new Block(each.deviceAddress(), each.byteSize, state));
                bytes += each.byteSize;
            }
            segments.add(new SegmentMemory(
                    first.deviceAddress(), bytes, OptionalLong.of(first.stream), isExpandable, blocks));
        }
        return segments;
    }

    private static void putFirst(TorchBlock block, Map<Long, TorchBlock> firsts) {
        if (block.previous == null || !block.previous.isMapped) {
            firsts.put(block.deviceAddress(), block);
        }
    }
}
