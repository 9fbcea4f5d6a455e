package io.cistern.simulated;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.BiPredicate;
import java.util.function.Consumer;

/// A stream-ordered memory pool.
///
/// ```
/// base            +32 MiB        +64 MiB
///  | page, backed  | page, backed | page, not backed ...        one range of addresses
///  [live][pending][idle .........][unused ...
/// ```
/// 1. Blocks are multiples of 512 bytes, placed by best fit; neighbours merge, over page borders too.
/// 2. A freed block is *pending* until its stream has passed the free. Its stream reuses it at once. Another stream
/// reuses it if it waits for the free by events (policy 1). When the free has completed it becomes *idle* at the
/// next allocation (policy 2) or when the host synchronises with it; idle memory is for all streams.
/// 3. If nothing fits, the pool grows by pages ([PoolGrowth]); if it can't, pending memory of other streams is
/// taken with an inserted wait (policy 3); else the result is out of memory.
/// 4. When the host synchronises, idle pages go back to the device, highest address first, while more than the
/// threshold is reserved. Trimming does the same with its own limit.
///
/// Invariants: `reserved = 32 MiB × backed pages`; `used = Σ bytes asked for of live blocks and of
/// those that `cuMemFree` took`.
/// Pending blocks do not merge before they are idle. Guarded by the machine's lock.
final class PoolSimulation {
    private final long handle;
    private final int device;
    private final MemoryPoolProperties properties;
    private final long base;
    private final long addressBytes;
    private final long limitBytes;
    private final Pages pages;
    private final TreeMap<Long, Page> backed = new TreeMap<>();
    private final FreeRanges idle = new FreeRanges();
    /// Idle and never backed together: where growth may place a block.
    private final FreeRanges vacant = new FreeRanges();
    private final Map<StreamQueue, PendingRanges> pending = new LinkedHashMap<>();
    private final Map<Integer, AccessRights> rights = new HashMap<>();
    private boolean followEvents = true;
    private boolean opportunistic = true;
    private boolean internalDependencies = true;
    private long threshold;
    private long reservedHigh;
    private long used;
    private long usedHigh;
    private boolean destroyed;
    private long live;

    /// Backs pages with physical memory.
    interface Pages {
        /// Maps one page; fails with OUT_OF_MEMORY.
        void map(PoolSimulation pool, long address);

        void unmap(long address);
    }

    PoolSimulation(
            long handle, int device, MemoryPoolProperties properties, long base, long addressBytes, Pages pages) {
        this.handle = handle;
        this.device = device;
        this.properties = properties;
        this.base = base;
        this.addressBytes = addressBytes;
        this.limitBytes = PoolGrowth.limit(properties.maxByteSize());
        this.pages = pages;
        vacant.put(base, addressBytes);
        if (!onHost()) {
            rights.put(device, AccessRights.READ_WRITE);
        }
    }

    /// Finds memory for a stream, and says which work of other streams it must wait for.
    long allocate(long byteSize, StreamQueue stream, StreamClock hostClock, Consumer<Work> waitFor) {
        if (opportunistic) {
            settle((owner, sequence) -> sequence <= owner.completed());
        }
        long rounded = LinearPlacement.roundUp(byteSize, PoolGrowth.UNIT_BYTES);
        long address = reuse(rounded, stream, hostClock);
        if (address == 0) {
            address = grow(rounded);
        }
        if (address == 0 && internalDependencies) {
            address = reuseWithWait(rounded, stream, waitFor);
        }
        if (address == 0) {
            throw new DriverFailure(CudaResult.OUT_OF_MEMORY);
        }
        touch(address, rounded, 1);
        live++;
        used += byteSize;
        usedHigh = Math.max(usedHigh, used);
        return address;
    }

    /// Takes memory back in stream order; the free is the stream's latest work.
    void free(long address, long byteSize, StreamQueue stream) {
        long rounded = LinearPlacement.roundUp(byteSize, PoolGrowth.UNIT_BYTES);
        live--;
        used -= byteSize;
        pending.computeIfAbsent(stream, _ -> new PendingRanges()).add(address, rounded, stream.issued());
    }

    /// Leaves bytes among the used ones that are not live any more.
    void countAsUsed(long byteSize) {
        used += byteSize;
    }

    /// Makes pending memory idle whose frees meet the condition.
    private void settle(BiPredicate<StreamQueue, Long> freed) {
        pending.forEach((stream, ranges) -> {
            PendingRanges.Range oldest = ranges.oldest();
            while (oldest != null && freed.test(stream, oldest.sequence())) {
                ranges.remove(oldest);
                becomeIdle(oldest.address(), oldest.byteSize());
                oldest = ranges.oldest();
            }
        });
    }

    private void becomeIdle(long address, long byteSize) {
        idle.put(address, byteSize);
        vacant.put(address, byteSize);
        touch(address, byteSize, -1);
    }

    private long reuse(long rounded, StreamQueue stream, StreamClock hostClock) {
        PendingRanges ranges = pending.get(stream);
        PendingRanges.Range own = ranges == null ? null : ranges.bestFit(rounded);
        FreeRanges.Range range = idle.bestFit(rounded);
        if (ranges != null && own != null && (range == null || own.byteSize() <= range.byteSize())) {
            return takePending(ranges, own, rounded);
        }
        if (range != null) {
            takeIdle(range.address(), rounded);
            return range.address();
        }
        return followEvents ? reuseOrdered(rounded, stream, hostClock) : 0;
    }

    private long reuseOrdered(long rounded, StreamQueue stream, StreamClock hostClock) {
        for (Map.Entry<StreamQueue, PendingRanges> entry : pending.entrySet()) {
            StreamQueue owner = entry.getKey();
            PendingRanges.Range found = entry.getValue()
                    .bestFit(
                            rounded,
                            sequence -> stream.clock().covers(owner, sequence) || hostClock.covers(owner, sequence));
            if (found != null) {
                return takePending(entry.getValue(), found, rounded);
            }
        }
        return 0;
    }

    private long reuseWithWait(long rounded, StreamQueue stream, Consumer<Work> waitFor) {
        for (Map.Entry<StreamQueue, PendingRanges> entry : pending.entrySet()) {
            PendingRanges.Range found = entry.getValue().bestFit(rounded);
            if (found != null) {
                Work last = entry.getKey().workAt(found.sequence());
                if (last != null) {
                    waitFor.accept(last);
                }
                stream.clock().include(entry.getKey(), found.sequence());
                return takePending(entry.getValue(), found, rounded);
            }
        }
        return 0;
    }

    /// Places a block at the lowest address where backed idle memory and pages yet to be backed make room for it.
    private long grow(long rounded) {
        FreeRanges.Range range = vacant.firstFit(rounded);
        if (range == null) {
            return 0;
        }
        long address = range.address();
        long missing = 0;
        for (long page = PoolGrowth.pageOf(address); page < address + rounded; page += PoolGrowth.PAGE_BYTES) {
            missing += backed.containsKey(page) ? 0 : PoolGrowth.PAGE_BYTES;
        }
        if (reserved() + missing > limitBytes || !back(address, rounded)) {
            return 0;
        }
        reservedHigh = Math.max(reservedHigh, reserved());
        takeIdle(address, rounded);
        return address;
    }

    /// Backs all pages of a range, or none.
    private boolean back(long address, long rounded) {
        java.util.List<Long> made = new java.util.ArrayList<>();
        for (long page = PoolGrowth.pageOf(address); page < address + rounded; page += PoolGrowth.PAGE_BYTES) {
            if (backed.containsKey(page)) {
                continue;
            }
            try {
                pages.map(this, page);
            } catch (DriverFailure outOfMemory) {
                made.forEach(this::unback);
                return false;
            }
            backed.put(page, new Page());
            idle.put(page, PoolGrowth.PAGE_BYTES);
            made.add(page);
        }
        return true;
    }

    private void unback(long page) {
        pages.unmap(page);
        backed.remove(page);
        idle.take(page, PoolGrowth.PAGE_BYTES);
    }

    /// What a synchronisation of the host does: frees it covers are settled, pages over the threshold go back.
    ///
    /// @return pages released
    int synchronised(StreamClock hostClock) {
        settle((owner, sequence) -> hostClock.covers(owner, sequence));
        return releaseDownTo(destroyed ? 0 : threshold);
    }

    /// Gives idle pages back, highest first, while more than `keepBytes` would still be reserved.
    int releaseDownTo(long keepBytes) {
        int released = 0;
        Map.Entry<Long, Page> entry = Long.compareUnsigned(reserved(), keepBytes) <= 0 ? null : backed.lastEntry();
        while (entry != null && Long.compareUnsigned(reserved() - PoolGrowth.PAGE_BYTES, keepBytes) >= 0) {
            if (entry.getValue().busyBytes == 0) {
                unback(entry.getKey());
                released++;
            }
            entry = backed.lowerEntry(entry.getKey());
        }
        return released;
    }

    private long takePending(PendingRanges ranges, PendingRanges.Range range, long rounded) {
        ranges.takeHead(range, rounded);
        touch(range.address(), rounded, -1);
        return range.address();
    }

    private void takeIdle(long address, long rounded) {
        idle.take(address, rounded);
        vacant.take(address, rounded);
    }

    /// Counts bytes of live or pending blocks in or out of the pages they lie in.
    private void touch(long address, long byteSize, int sign) {
        for (long at = address; at < address + byteSize; ) {
            long upTo = Math.min(address + byteSize, PoolGrowth.pageOf(at) + PoolGrowth.PAGE_BYTES);
            Objects.requireNonNull(backed.get(PoolGrowth.pageOf(at))).busyBytes += sign * (upTo - at);
            at = upTo;
        }
    }

    long reserved() {
        return backed.size() * PoolGrowth.PAGE_BYTES;
    }

    long used() {
        return used;
    }

    long handle() {
        return handle;
    }

    int device() {
        return device;
    }

    MemoryPoolProperties properties() {
        return properties;
    }

    /// Whether its memory is the host's; then `device` only names a context.
    boolean onHost() {
        return properties.location().type() != MemoryLocation.Type.DEVICE;
    }

    long base() {
        return base;
    }

    long addressBytes() {
        return addressBytes;
    }

    void destroy() {
        destroyed = true;
    }

    boolean destroyed() {
        return destroyed;
    }

    /// Whether nothing is left of a destroyed pool.
    boolean gone() {
        return destroyed && live == 0 && backed.isEmpty();
    }

    AccessRights rights(MemoryLocation accessor) {
        return accessor.type() == MemoryLocation.Type.DEVICE
                ? rights.getOrDefault(accessor.id(), AccessRights.NONE)
                : AccessRights.NONE;
    }

    void setRights(int accessor, AccessRights value) {
        rights.put(accessor, value);
    }

    long attribute(io.cistern.cuda.PoolAttribute attribute) {
        return switch (attribute) {
            case REUSE_FOLLOW_EVENT_DEPENDENCIES -> followEvents ? 1 : 0;
            case REUSE_ALLOW_OPPORTUNISTIC -> opportunistic ? 1 : 0;
            case REUSE_ALLOW_INTERNAL_DEPENDENCIES -> internalDependencies ? 1 : 0;
            case RELEASE_THRESHOLD -> threshold;
            case RESERVED_CURRENT -> reserved();
            case RESERVED_HIGH -> reservedHigh;
            case USED_CURRENT -> used;
            case USED_HIGH -> usedHigh;
        };
    }

    void setAttribute(io.cistern.cuda.PoolAttribute attribute, long value) {
        switch (attribute) {
            case REUSE_FOLLOW_EVENT_DEPENDENCIES -> followEvents = value != 0;
            case REUSE_ALLOW_OPPORTUNISTIC -> opportunistic = value != 0;
            case REUSE_ALLOW_INTERNAL_DEPENDENCIES -> internalDependencies = value != 0;
            case RELEASE_THRESHOLD -> threshold = value;
            case RESERVED_HIGH -> {
                DriverFailure.require(value == 0);
                reservedHigh = reserved();
            }
            case USED_HIGH -> {
                DriverFailure.require(value == 0);
                usedHigh = used;
            }
            case RESERVED_CURRENT, USED_CURRENT -> throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
    }

    boolean invariantHolds() {
        return idle.invariantHolds() && vacant.invariantHolds() && used >= 0 && reserved() >= idle.totalBytes();
    }

    /// A backed page and how many of its bytes are live or pending.
    private static final class Page {
        private long busyBytes;
    }
}
