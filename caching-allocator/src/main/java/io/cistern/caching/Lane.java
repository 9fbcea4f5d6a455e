package io.cistern.caching;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// What one thread keeps of one device's cache: small blocks by stream and size, and before them the block
/// that it freed last, of any size. So what a thread frees it gets again without a lock, last in, first
/// out.
///
/// The block freed last stands in the lane itself, because a pair costs about as many nanoseconds as there
/// are reads that wait for each other; through the bins there are four more.
///
/// **Entering.** A lane is guarded by *entry*. The owner of a lane enters with plain stores: it
/// says that it is active, and sees that nobody claimed the lane. Who wants to empty the lane claims it,
/// lets a fence pass over every thread ([ProcessFence#everywhere]) and waits until the owner is not active;
/// either the owner saw the claim, or it is seen. An owner that finds its lane claimed does without it.
/// Lanes that threads share, and all lanes where there is no such fence, are entered with one
/// compare-and-set. Nobody takes a lock or makes a call of the driver inside.
///
/// **Invariants**: Σ allowance of the bins = `allotted` ≤ `bound`, and those of [LaneBins]; so a lane holds
/// at most `bound` bytes and the block freed last, which is at most 64 MiB.
final class Lane {
    /// Larger blocks always go to their shard, of any device.
    static final long LARGEST_KEPT = 64L << 20;

    private static final int REFUSALS_BEFORE_EVICTION = 512;

    private static final long NOTHING = -1;

    /// A hit saves some 80 ns and a miss costs some 100, so a lane pays from about one hit in three on; the
    /// weight is higher because while a lane is passed by, only every sixteenth block can make a hit.
    private static final int HIT = 32;

    private static final int PROBE = 16;
    private static final int MOST_USEFUL = 512;

    /// How often a program has to ask for just the large block that it freed last before it gets that: else
    /// best fit does better, which leaves room in one piece. Without, two of five recorded programs
    /// reserved 1.3 and 2.3 % more.
    private static final int PROOF = 4;

    /// Marks a large block that best fit is to have.
    private static final long UNPROVEN = 1L << 62;

    private static final long UNKNOWN = Long.MAX_VALUE;

    private static final VarHandle ACTIVE = handle("active", int.class);
    private static final VarHandle CLAIMED = handle("claimed", int.class);
    private static final VarHandle BINS = handle("bins", LaneBins[].class);
    private static final LaneBins[] NONE = {};

    /// The owner's thread id, which is never given to another thread; 0 for a lane that threads share.
    long ownerId;

    final int device;
    private final boolean fenced;
    private final long largestKept;
    private final LaneCounters smallCounters;
    private final LaneCounters largeCounters;
    private volatile @Nullable WeakReference<Thread> owner;

    @SuppressWarnings("unused") // through ACTIVE
    private int active;

    @SuppressWarnings("unused") // through CLAIMED
    private int claimed;

    /// The stream that the owner used last, and its bins. Written by the owner, inside.
    long lastStream;

    LaneBins last = LaneBins.ended();

    /// The owner's, for what it moves to shards and from them.
    final AddressBatch batch = new AddressBatch();

    private LaneBins[] bins = NONE;

    /// The most that the lane was ever told that it may hold.
    private long bound;

    /// Blocks that found no room. Most are sent to their shard, which is cheaper than to make room for one;
    /// but what is here and not asked for must not stay.
    private int refusals;
    private long allotted;

    /// The block that was freed last, on the last used stream: see [#sizeKey].
    private long hotSize = NOTHING;

    private long hotAddress;

    /// Hits against misses of small requests, and blocks freed while the lane was useless.
    private int usefulness;

    private int freed;

    /// Requests in a row that the large block freed last would have served, and whether they are too few.
    private int repeats;

    private long unproven = UNPROVEN;

    // Keeps the lanes of different threads out of each other's cache lines.
    @SuppressWarnings("unused")
    private long p1, p2, p3, p4, p5, p6, p7, p8;

    /// Makes a lane.
    ///
    /// @param fenced whether the owner alone enters with plain stores
    /// @param largestKept larger blocks always go to their shard; at most [#LARGEST_KEPT]
    Lane(int device, boolean fenced, long largestKept, DeviceCounters counters) {
        this.device = device;
        this.fenced = fenced;
        this.largestKept = largestKept;
        this.smallCounters = new LaneCounters(true, counters);
        this.largeCounters = new LaneCounters(false, counters);
    }

    /// Makes the calling thread the owner; leaves in [#batch] what has to go back.
    void own(Thread thread) {
        owner = new WeakReference<>(thread);
        ownerId = thread.threadId();
        while (!enter()) {
            Thread.onSpinWait();
        }
        evictHot(batch);
        last = LaneBins.ended();
        leave();
    }

    /// Whether the owner has ended. Seeing the end of a thread orders all that it wrote before what the
    /// observer does next.
    boolean isOrphan() {
        WeakReference<Thread> reference = owner;
        if (reference == null) {
            return false;
        }
        Thread thread = reference.get();
        return thread == null || !thread.isAlive();
    }

    /// Enters, for the owner or a thread that shares the lane.
    ///
    /// @return false if somebody else is inside or wants to be
    boolean enter() {
        if (!fenced) {
            return ACTIVE.compareAndSet(this, 0, 1);
        }
        ACTIVE.setOpaque(this, 1);
        VarHandle.acquireFence();
        if ((int) CLAIMED.getAcquire(this) == 0) {
            return true;
        }
        ACTIVE.setRelease(this, 0);
        return false;
    }

    void leave() {
        ACTIVE.setRelease(this, 0);
    }

    /// Keeps the owner from entering; a lane with plain entries needs [ProcessFence#everywhere] before
    /// [#awaitClaim]. One thread at a time.
    void claim() {
        if (fenced) {
            CLAIMED.setVolatile(this, 1);
        }
    }

    /// Waits until the owner, who is inside for some instructions, has left.
    void awaitClaim() {
        for (int spins = 0; !isClaimed(); spins++) {
            // The system may have taken the owner's processor away in the middle of them.
            if (spins < 1000) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(20_000);
            }
        }
    }

    private boolean isClaimed() {
        return fenced ? (int) ACTIVE.getAcquire(this) == 0 || isOrphan() : ACTIVE.compareAndSet(this, 0, 1);
    }

    /// Lets the owner enter again.
    void unclaim() {
        if (fenced) {
            CLAIMED.setRelease(this, 0);
        } else {
            leave();
        }
    }

    /// Takes a block that the owner freed on the stream that it used last.
    ///
    /// @return its address, or 0
    long take(long byteSize, long stream) {
        if (stream != lastStream || !enter()) {
            return 0;
        }
        long address = 0;
        long size = sizeKey(byteSize);
        if (size == hotSize) {
            hotSize = NOTHING;
            address = hotAddress;
        } else if (size < SizeClasses.COUNT) {
            address = last.pop((int) size);
        }
        if (address != 0) {
            countersOf(size).hit(bytes(size), byteSize);
            usefulness = Math.min(usefulness + HIT, MOST_USEFUL);
        }
        leave();
        return address;
    }

    /// Notes that a small request found nothing.
    void foundNothing() {
        usefulness = Math.max(usefulness - 1, -2 * MOST_USEFUL);
    }

    /// Whether small blocks hardly ever come again in their sizes, so that the lane only costs.
    boolean isUseless() {
        return usefulness < -MOST_USEFUL;
    }

    /// Whether a small block that is being freed passes the lane by. One in some is kept all the same, which
    /// tells when the lane is of use again.
    boolean passesBy() {
        return isUseless() && (freed & PROBE - 1) != 0;
    }

    private LaneCounters countersOf(long sizeKey) {
        return sizeKey < SizeClasses.COUNT ? smallCounters : largeCounters;
    }

    /// What is counted of small or of large blocks; see there who may write.
    LaneCounters counters(boolean small) {
        return small ? smallCounters : largeCounters;
    }

    /// Keeps a block that the owner frees on the stream that it used last.
    ///
    /// @return false if there is no room, or it may not be one of that stream
    boolean keep(long address, long byteSize, long stream) {
        if (stream != lastStream || (isUseless() && (++freed & PROBE - 1) != 0) || !enter()) {
            return false;
        }
        LaneBins into = last;
        long size = sizeKey(byteSize);
        boolean known = size < SizeClasses.COUNT ? into.knowsSmall(address) : into.knowsLarge(address);
        boolean kept = known && size <= largestKept && (hotSize == NOTHING || moveHot(into));
        if (kept) {
            setHot(size, address);
            countersOf(size).returned(byteSize);
        }
        leave();
        return kept;
    }

    private void setHot(long size, long address) {
        hotSize = size < SizeClasses.COUNT ? size : size | unproven;
        hotAddress = address;
    }

    /// Makes the block that was freed last one of the others.
    private boolean moveHot(LaneBins into) {
        return hotSize < SizeClasses.COUNT && into.push((int) hotSize, hotAddress);
    }

    /// What tells whether a block serves a request: its class, or its size if that is larger. [#UNKNOWN]
    /// for what is no size.
    private static long sizeKey(long byteSize) {
        if (SizeClasses.has(byteSize)) {
            return SizeClasses.of(byteSize);
        }
        return byteSize > 0 ? Sizes.rounded(byteSize, Sizes.GRANULE) : UNKNOWN;
    }

    /// Keeps a block as the one freed last, and makes room for the one before it. Inside.
    ///
    /// @param mayHold the most that the lane may hold now, at least one block
    /// @param evicted gets what has to go for that
    void keep(LaneBins into, long address, long byteSize, long mayHold, AddressBatch evicted) {
        if (hotSize != NOTHING && hotSize < SizeClasses.COUNT) {
            keepSmall(into, hotAddress, (int) hotSize, mayHold, evicted);
            hotSize = NOTHING;
        }
        evictHot(evicted);
        long size = sizeKey(byteSize);
        if (size <= largestKept) {
            setHot(size, address);
        } else {
            evicted.add(address);
        }
    }

    /// Takes the block out that was freed last. Inside.
    void evictHot(AddressBatch evicted) {
        if (hotSize != NOTHING) {
            hotSize = NOTHING;
            evicted.add(hotAddress);
        }
    }

    /// Takes it out if it is large, because a large block is asked for, and notes whether it would have
    /// served. Inside.
    void evictLarge(long byteSize, AddressBatch evicted) {
        boolean serves = hotSize == (sizeKey(byteSize) | UNPROVEN);
        repeats = serves ? repeats + 1 : 0;
        unproven = repeats < PROOF ? UNPROVEN : 0;
        if (hotSize >= SizeClasses.COUNT) {
            evictHot(evicted);
        }
    }

    /// Makes the bins of a shard's stream the last used. Inside.
    ///
    /// @return null if the stream has ended
    @Nullable
    LaneBins use(StreamShard shard, long stream, AddressBatch evicted) {
        LaneBins bins = binsOf(shard);
        if (bins != null && bins != last) {
            if (hotSize != NOTHING && moveHot(last)) {
                hotSize = NOTHING;
            }
            evictHot(evicted);
            last = bins;
        }
        if (bins != null) {
            lastStream = stream;
        }
        return bins;
    }

    /// The bins of a stream, or null. Inside.
    @Nullable
    LaneBins find(long key) {
        for (LaneBins each : bins) {
            if (each.key == key) {
                return each;
            }
        }
        return null;
    }

    /// The bins of a shard's stream, made if there are none. Inside.
    ///
    /// @return null if the stream has ended
    @Nullable
    LaneBins binsOf(StreamShard shard) {
        if (shard.isClosed()) { // read inside: who closes it, empties this lane later
            return null;
        }
        LaneBins present = find(shard.stream);
        LaneBins found = present != null ? present : add(shard.stream);
        return found.learn(shard) ? found : null;
    }

    private LaneBins add(long key) {
        LaneBins added = new LaneBins(key);
        LaneBins[] more = Arrays.copyOf(bins, bins.length + 1);
        more[bins.length] = added;
        BINS.setRelease(this, more);
        return added;
    }

    /// Keeps a small block, and makes the room for it.
    private void keepSmall(LaneBins into, long address, int sizeClass, long mayHold, AddressBatch evicted) {
        into.makePlace(this, sizeClass, evicted);
        boolean kept = keepIfRoom(into, address, sizeClass, mayHold);
        while (!kept && into.evictLarger(sizeClass, evicted)) {
            kept = keepIfRoom(into, address, sizeClass, mayHold);
        }
        if (!kept) {
            evicted.add(address);
            if (++refusals % REFUSALS_BEFORE_EVICTION == 0) {
                makeRoom(into, evicted);
            }
        }
    }

    /// Keeps a small block where nothing has to go for it. Inside.
    boolean keepIfRoom(LaneBins into, long address, int sizeClass, long mayHold) {
        if (into.ended) {
            return false;
        }
        into.used(sizeClass);
        bound = Math.max(bound, mayHold);
        if (into.room < SizeClasses.byteSize(sizeClass)) {
            allot(into, Math.max(SizeClasses.byteSize(sizeClass), bound / 8));
        }
        return into.push(sizeClass, address);
    }

    /// Notes a miss.
    ///
    /// @return how many blocks to fetch
    int missed(LaneBins from, int sizeClass) {
        if (!enter()) {
            return 1;
        }
        int batchSize = from.missed(sizeClass);
        leave();
        return batchSize;
    }

    /// Keeps blocks, of which the last is to be taken first, as far as there is room.
    void stock(LaneBins into, int sizeClass, long mayHold, AddressBatch blocks) {
        if (enter()) {
            int kept = 0;
            while (kept < blocks.count && keepIfRoom(into, blocks.addresses[kept], sizeClass, mayHold)) {
                kept++;
            }
            leave();
            blocks.removeFirst(kept);
        }
    }

    /// Gives bins more of what is left of the bound.
    private void allot(LaneBins into, long wanted) {
        long more = Math.min(wanted, bound - allotted);
        into.allowance += more;
        into.room += more;
        allotted += more;
    }

    /// The bins of other streams go, if they hold anything, or else a quarter of what these bins hold.
    private void makeRoom(LaneBins into, AddressBatch evicted) {
        long before = allotted;
        for (LaneBins other : bins) {
            if (other != into) {
                other.evictAll(evicted);
                takeRoom(other);
            }
        }
        if (allotted == before) {
            into.makeRoom(bound / 4, evicted);
        }
    }

    private void takeRoom(LaneBins from) {
        from.allowance -= from.room;
        allotted -= from.room;
        from.room = 0;
    }

    private @Nullable StreamShard hotShard() {
        return hotSize == NOTHING ? null : hotSize < SizeClasses.COUNT ? last.small : last.large;
    }

    /// The size of the block of a [key][#sizeKey], which may be marked; 0 for none.
    private static long bytes(long sizeKey) {
        if (sizeKey == NOTHING) {
            return 0;
        }
        return sizeKey < SizeClasses.COUNT ? SizeClasses.byteSize((int) sizeKey) : sizeKey & ~UNPROVEN;
    }

    /// Takes all blocks of a shard out. Inside, or with the lane claimed.
    void evict(StreamShard shard, AddressBatch evicted) {
        for (LaneBins each : bins) {
            if (each.small == shard) {
                each.evictAll(evicted);
                takeRoom(each);
            }
        }
        if (shard == hotShard()) {
            evictHot(evicted);
        }
    }

    /// Takes all blocks of a stream that has ended out, and forgets it. Inside, or with the lane claimed.
    void end(StreamShard shard, AddressBatch evicted) {
        evict(shard, evicted);
        LaneBins[] left = bins;
        for (LaneBins each : bins) {
            if (each.isOf(shard)) {
                forget(each, shard, evicted);
                left = without(left, each);
            }
        }
        BINS.setRelease(this, left);
    }

    private void forget(LaneBins each, StreamShard shard, AddressBatch evicted) {
        StreamShard other = shard == each.small ? each.large : each.small;
        if (other != null) {
            evict(other, evicted);
        }
        each.ended = true;
        each.smallSpan = 0;
        each.largeSpan = 0;
    }

    private static LaneBins[] without(LaneBins[] all, LaneBins gone) {
        return Arrays.stream(all).filter(each -> each != gone).toArray(LaneBins[]::new);
    }

    /// Bytes of a shard's blocks that are here; a guess while others change it, exact at rest.
    long bytesOf(StreamShard shard) {
        long bytes = hotShard() == shard ? bytes(hotSize) : 0;
        for (LaneBins each : (LaneBins[]) BINS.getAcquire(this)) {
            bytes += each.small == shard ? each.bytes() : 0;
        }
        return bytes;
    }

    /// The size of the largest block that is here, or 0; a guess while others change it, exact at rest.
    long largestBytes() {
        long largest = bytes(hotSize);
        for (LaneBins each : (LaneBins[]) BINS.getAcquire(this)) {
            largest = Math.max(largest, each.largestBytes());
        }
        return largest;
    }

    /// Corrects what shards counted for what is here and was handed out; a guess while others change it, exact at
    /// rest.
    void addTo(ShardTotals small, ShardTotals large) {
        long hot = hotSize;
        boolean hotIsSmall = hot < SizeClasses.COUNT;
        long hotBlocks = hot == NOTHING ? 0 : 1;
        long blocks = hotIsSmall ? hotBlocks : 0;
        long bytes = hotIsSmall ? bytes(hot) : 0;
        for (LaneBins each : (LaneBins[]) BINS.getAcquire(this)) {
            blocks += each.blocks();
            bytes += each.bytes();
        }
        smallCounters.addTo(small, blocks, bytes);
        largeCounters.addTo(large, hotIsSmall ? 0 : hotBlocks, hotIsSmall ? 0 : bytes(hot));
    }

    /// Inside, or with the lane claimed.
    void resetPeaks() {
        smallCounters.resetPeak();
        largeCounters.resetPeak();
    }

    /// Checks the invariants above. Inside, or with the lane claimed.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        long sum = 0;
        for (LaneBins each : bins) {
            each.checkInvariants();
            sum += each.allowance;
        }
        Invariant.check(sum == allotted, "what bins have was allotted", sum - allotted);
        Invariant.check(allotted <= bound, "a lane keeps its bound", allotted - bound);
        StreamShard hot = hotShard();
        Invariant.check(
                hotSize == NOTHING || (hot != null && hot.isLive(hotAddress, bytes(hotSize))),
                "the block freed last is live",
                hotAddress);
    }

    private static VarHandle handle(String field, Class<?> type) {
        try {
            return MethodHandles.lookup().findVarHandle(Lane.class, field, type);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
