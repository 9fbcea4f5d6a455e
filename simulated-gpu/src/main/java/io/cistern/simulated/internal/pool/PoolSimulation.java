package io.cistern.simulated.internal.pool;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.FreeRanges;
import io.cistern.simulated.internal.memory.LinearPlacement;
import io.cistern.simulated.internal.memory.SharedStore;
import io.cistern.simulated.internal.stream.StreamClock;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiPredicate;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A stream-ordered memory pool, which places blocks and takes pages as an H200 with driver 580 does.
///
/// A block is the head of the smallest free range that holds it, the oldest one among equals. The pool
/// searches in this order:
///
/// 1. in memory that its own stream freed, whether or not the free has happened;
/// 2. in idle memory that has its pages;
/// 3. in memory that another stream freed, if the block's stream waits for the free by events (policy 1) or the
///    free has happened (policy 2);
/// 4. in idle memory again, after all frees that have happened made their memory idle (policy 2): first in
///    memory that has its pages, then in memory that needs some ([IdlePoolMemory]);
/// 5. in memory that another stream freed, with an inserted wait (policy 3). Otherwise the result is out of
///    memory.
///
/// Memory that a stream freed merges with neighbours that the same stream freed, and idle memory with all idle
/// neighbours. A synchronisation of the host makes the frees that it waited for idle. Then idle pages are
/// returned to the device, highest address first, while more than the threshold is reserved. Trimming does
/// the same with its own limit.
///
/// Invariant: `used = Σ bytes asked for of live blocks and of those that `cuMemFree` took`. Guarded by the
/// machine's lock.
public final class PoolSimulation {
    /// The unit in which a pool takes and returns physical memory, as observed on an H200 with driver 580.
    public static final long PAGE_BYTES = 32L << 20;

    /// Unit and alignment of blocks.
    public static final long UNIT_BYTES = 512;

    private final long handle;
    private final int device;
    private final MemoryPoolProperties properties;
    private final long base;
    private final long addressBytes;
    private final long limitBytes;
    private final IdlePoolMemory idle;
    private final Map<StreamQueue, FreeRanges> freed = new LinkedHashMap<>();
    private final Map<Integer, AccessRights> rights = new HashMap<>();
    private boolean followEvents = true;
    private boolean opportunistic = true;
    private boolean internalDependencies = true;
    private long threshold;
    private long reservedHigh;
    private long used;
    private long usedHigh;
    private boolean destroyed;

    /// The memory that other processes see, created on first use, or that of another process.
    private @Nullable SharedStore store;

    private boolean isImported;
    private boolean isExported;
    private long live;

    public interface Pages {
        /// Maps one page; fails with OUT_OF_MEMORY.
        void map(PoolSimulation pool, long address);

        void unmap(long address);
    }

    public PoolSimulation(
            long handle, int device, MemoryPoolProperties properties, long base, long addressBytes, Pages pages) {
        this.handle = handle;
        this.device = device;
        this.properties = properties;
        this.base = base;
        this.addressBytes = addressBytes;
        long most = properties.maxByteSize();
        boolean isLimited = most != 0 && most <= Long.MAX_VALUE - PAGE_BYTES;
        this.limitBytes = isLimited ? LinearPlacement.roundUp(most, PAGE_BYTES) : Long.MAX_VALUE;
        idle = new IdlePoolMemory(this, pages, base, addressBytes);
        if (!onHost()) {
            rights.put(device, AccessRights.READ_WRITE);
        }
    }

    /// Returns memory for a stream, and passes the work of other streams that it must wait for to `waitFor`.
    public long allocate(long byteSize, StreamQueue stream, StreamClock hostClock, Consumer<Work> waitFor) {
        long rounded = LinearPlacement.roundUp(byteSize, UNIT_BYTES);
        long address = reuse(rounded, stream, hostClock);
        if (address == 0) {
            address = grow(rounded);
        }
        if (address == 0 && internalDependencies) {
            address = reuseWithWait(rounded, stream, waitFor);
        }
        failIf(address == 0, CudaResult.OUT_OF_MEMORY);
        live++;
        used += byteSize;
        usedHigh = Math.max(usedHigh, used);
        return address;
    }

    /// Frees memory in stream order; the stream's latest work is the free.
    public void free(long address, long byteSize, StreamQueue stream) {
        long rounded = LinearPlacement.roundUp(byteSize, UNIT_BYTES);
        live--;
        used -= byteSize;
        FreeRanges ranges = freed.computeIfAbsent(stream, _ -> new FreeRanges());
        ranges.add(ranges.joined(new FreeRanges.Range(address, rounded, idle.nextOrder(), stream.issued())));
    }

    /// Counts bytes as used that are no longer live.
    public void countAsUsed(long byteSize) {
        used += byteSize;
    }

    /// Makes memory idle if its frees meet the condition; of each stream, the latest first.
    private void makeIdle(BiPredicate<StreamQueue, Long> happened) {
        freed.forEach((stream, ranges) -> {
            List<FreeRanges.Range> happenedFrees = new ArrayList<>();
            ranges.all().forEach(range -> {
                if (happened.test(stream, range.sequence())) {
                    happenedFrees.add(range);
                }
            });
            happenedFrees.sort(Comparator.comparingLong(FreeRanges.Range::order).reversed());
            happenedFrees.forEach(range -> idle.add(ranges.remove(range)));
        });
    }

    private long reuse(long rounded, StreamQueue stream, StreamClock hostClock) {
        FreeRanges ranges = freed.get(stream);
        FreeRanges.Range own = ranges == null ? null : ranges.bestFit(rounded);
        if (ranges != null && own != null) {
            return takeHead(ranges, own, rounded);
        }
        long address = idle.take(rounded);
        return address != 0 ? address : reuseOfOthers(rounded, stream, hostClock);
    }

    private long reuseOfOthers(long rounded, StreamQueue stream, StreamClock hostClock) {
        for (Map.Entry<StreamQueue, FreeRanges> entry : freed.entrySet()) {
            StreamQueue owner = entry.getKey();
            FreeRanges.Range found = entry.getValue()
                    .bestFit(
                            rounded,
                            sequence -> (opportunistic && sequence <= owner.completed())
                                    || (followEvents
                                            && (stream.clock().covers(owner, sequence)
                                                    || hostClock.covers(owner, sequence))));
            if (found != null) {
                return takeHead(entry.getValue(), found, rounded);
            }
        }
        return 0;
    }

    private long reuseWithWait(long rounded, StreamQueue stream, Consumer<Work> waitFor) {
        for (Map.Entry<StreamQueue, FreeRanges> entry : freed.entrySet()) {
            FreeRanges.Range found = entry.getValue().bestFit(rounded);
            if (found != null) {
                Work last = entry.getKey().workAt(found.sequence());
                if (last != null) {
                    waitFor.accept(last);
                }
                stream.clock().include(entry.getKey(), found.sequence());
                return takeHead(entry.getValue(), found, rounded);
            }
        }
        return 0;
    }

    private long takeHead(FreeRanges ranges, FreeRanges.Range range, long rounded) {
        ranges.remove(range);
        if (range.byteSize() > rounded) {
            ranges.add(range.behind(rounded, idle.nextOrder()));
        }
        return range.address();
    }

    private long grow(long rounded) {
        if (opportunistic) {
            makeIdle((owner, sequence) -> sequence <= owner.completed());
        }
        long address = idle.take(rounded);
        if (address == 0) {
            address = idle.takeWithPages(rounded, limitBytes);
            reservedHigh = Math.max(reservedHigh, reserved());
        }
        return address;
    }

    /// Reacts to a synchronisation of the host: the memory of the frees that it covers becomes idle, and
    /// pages over the threshold are released.
    public int synchronised(StreamClock hostClock) {
        makeIdle((owner, sequence) -> hostClock.covers(owner, sequence));
        return releaseDownTo(destroyed ? 0 : threshold);
    }

    /// Releases idle pages, highest first, while at least `keepBytes` stay reserved.
    public int releaseDownTo(long keepBytes) {
        return idle.releaseDownTo(keepBytes);
    }

    public long reserved() {
        return idle.reservedBytes();
    }

    public long handle() {
        return handle;
    }

    public int device() {
        return device;
    }

    public MemoryPoolProperties properties() {
        return properties;
    }

    /// Returns whether its memory is the host's; then `device` only names a context.
    public boolean onHost() {
        return properties.location().type() != MemoryLocation.Type.DEVICE;
    }

    public long base() {
        return base;
    }

    public long addressBytes() {
        return addressBytes;
    }

    public boolean isExportable() {
        return (properties.handleTypes() & HandleType.POSIX_FILE_DESCRIPTOR.bit()) != 0;
    }

    /// Makes it the pool of another process.
    public void becomeImport(SharedStore imported) {
        store = imported;
        isImported = true;
    }

    public boolean isImported() {
        return isImported;
    }

    /// Returns a descriptor for another process.
    public int export() {
        int descriptor = store().export();
        isExported = true;
        return descriptor;
    }

    /// Returns whether it was exported; its pointers can be exported only after that.
    public boolean isExported() {
        return isExported;
    }

    public SharedStore store() {
        DriverFailure.require(isExportable() || isImported);
        if (store == null) {
            store = SharedStore.create();
        }
        return store;
    }

    /// Closes its store; mappings of it remain.
    public void closeStore() {
        if (store != null) {
            store.close();
        }
    }

    public void destroy() {
        destroyed = true;
    }

    /// Returns whether the pool is destroyed and all its memory is released.
    public boolean gone() {
        return destroyed && live == 0 && reserved() == 0;
    }

    public AccessRights rights(MemoryLocation accessor) {
        if (properties.managed()) {
            return AccessRights.READ_WRITE;
        }
        return accessor.type() == MemoryLocation.Type.DEVICE
                ? rights.getOrDefault(accessor.id(), AccessRights.NONE)
                : AccessRights.NONE;
    }

    public void setRights(int accessor, AccessRights value) {
        rights.put(accessor, value);
    }

    public long attribute(io.cistern.cuda.PoolAttribute attribute) {
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

    public void setAttribute(io.cistern.cuda.PoolAttribute attribute, long value) {
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
}
