package io.cistern.caching;

import io.cistern.cuda.process.ProcessFence;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// What one thread keeps of one device's cache: small blocks by stream and size, and the large block that it freed
/// last. So what a thread frees it gets again without a lock, last in, first out.
///
/// **Entering.** All but the last used stream is guarded by *entry*. The owner of a lane enters with plain stores: it
/// says that it is active, and sees that nobody claimed the lane. Who wants to empty the lane claims it, lets a fence
/// pass over every thread ([ProcessFence#everywhere]) and waits until the owner is not active; either the owner saw the
/// claim, or it is seen. An owner that finds its lane claimed does without it. Lanes that threads share, and all lanes
/// where there is no such fence, are entered with one compare-and-set. Nobody takes a lock or makes a call of the
/// driver inside.
///
/// **Invariants**: Σ allowance of the bins = `allotted` ≤ `bound`; and those of [LaneBins].
final class Lane {
    /// Larger blocks always go to their shard.
    static final long LARGEST_KEPT = 64L << 20;

    private static final VarHandle ACTIVE = handle("active", int.class);
    private static final VarHandle CLAIMED = handle("claimed", int.class);
    private static final VarHandle BINS = handle("bins", LaneBins[].class);
    private static final LaneBins[] NONE = {};

    /// The owner's thread id, which is never given to another thread; 0 for a lane that threads share.
    long ownerId;

    final int device;
    private final boolean fenced;
    private volatile @Nullable WeakReference<Thread> owner;

    @SuppressWarnings("unused") // through ACTIVE
    private int active;

    @SuppressWarnings("unused") // through CLAIMED
    private int claimed;

    /// The stream that the owner used last, and its bins; for the owner alone.
    long lastStream;

    LaneBins last = LaneBins.ended();

    /// The owner's, for what it moves to shards and from them.
    final AddressBatch batch = new AddressBatch();

    private LaneBins[] bins = NONE;

    private long bound;
    private long allotted;

    /// The large block, or 0 bytes; and the bins of its stream.
    private long largeBytes;

    private long largeAddress;
    private LaneBins largeBins = last;

    // Keeps the lanes of different threads out of each other's cache lines.
    @SuppressWarnings("unused")
    private long p1, p2, p3, p4, p5, p6, p7, p8;

    /// Makes a lane.
    ///
    /// @param fenced whether the owner alone enters with plain stores
    Lane(int device, boolean fenced) {
        this.device = device;
        this.fenced = fenced;
    }

    /// Makes the calling thread the owner.
    void own(Thread thread) {
        owner = new WeakReference<>(thread);
        ownerId = thread.threadId();
        lastStream = 0;
        last = LaneBins.ended();
    }

    /// Whether the owner has ended. Seeing the end of a thread orders all that it wrote before what the observer
    /// does next.
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
        LaneBins from = last;
        if (stream != lastStream || !enter()) {
            return 0;
        }
        long address = takeFrom(from, byteSize);
        leave();
        return address;
    }

    /// Inside.
    long takeFrom(LaneBins from, long byteSize) {
        return SizeClasses.has(byteSize) ? from.pop(SizeClasses.of(byteSize)) : takeLarge(from, byteSize);
    }

    private long takeLarge(LaneBins from, long byteSize) {
        if (Sizes.rounded(byteSize, Sizes.GRANULE) != largeBytes || largeBytes == 0 || largeBins != from) {
            return 0;
        }
        largeBytes = 0;
        return largeAddress;
    }

    /// Keeps a block that the owner frees on the stream that it used last.
    ///
    /// @return false if there is no room, or it may not be one of that stream
    boolean keep(long address, long byteSize, long stream) {
        LaneBins into = last;
        if (stream != lastStream || !enter()) {
            return false;
        }
        boolean kept;
        if (SizeClasses.has(byteSize)) {
            kept = into.knowsSmall(address) && into.push(SizeClasses.of(byteSize), address);
        } else {
            kept = into.knowsLarge(address) && keepLarge(into, address, byteSize);
        }
        leave();
        return kept;
    }

    /// Inside.
    ///
    /// @return false if there is one already, or it is too large
    boolean keepLarge(LaneBins into, long address, long byteSize) {
        if (largeBytes != 0 || Long.compareUnsigned(byteSize - 1, LARGEST_KEPT) >= 0) {
            return false;
        }
        largeBytes = Sizes.rounded(byteSize, Sizes.GRANULE);
        largeAddress = address;
        if (largeBins != into) { // a reference costs more to write than to compare
            largeBins = into;
        }
        return true;
    }

    /// Takes the large block out, whatever its size. Inside.
    void evictLarge(AddressBatch evicted) {
        if (largeBytes != 0) {
            largeBytes = 0;
            evicted.add(largeAddress);
        }
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

    /// Keeps a small block, and makes the room for it. Inside.
    ///
    /// @param mayHold the most that the lane may hold now, at least one block
    /// @param evicted gets what has to go for that
    void keepSmall(LaneBins into, long address, int sizeClass, long mayHold, AddressBatch evicted) {
        long byteSize = SizeClasses.byteSize(sizeClass);
        into.makePlace(sizeClass, evicted);
        bound = Math.max(bound, mayHold);
        if (into.room < byteSize) {
            allot(into, Math.min(bound, Math.max(byteSize, bound / 8)));
        }
        if (into.room < byteSize) {
            makeRoom(into, byteSize, evicted);
        }
        if (!into.push(sizeClass, address)) {
            evicted.add(address);
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
            allot(into, SizeClasses.byteSize(sizeClass));
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

    /// Takes from the bins of other streams what they don't use, then what they hold; and then the bins' own blocks go.
    private void makeRoom(LaneBins into, long byteSize, AddressBatch evicted) {
        for (LaneBins other : bins) {
            if (other != into) {
                takeRoom(other);
            }
        }
        for (int i = 0; i < bins.length && into.room + bound - allotted < byteSize; i++) {
            if (bins[i] != into) {
                bins[i].evictAll(evicted);
                takeRoom(bins[i]);
            }
        }
        allot(into, Math.max(byteSize, bound / 8));
        into.makeRoom(byteSize, evicted);
    }

    private void takeRoom(LaneBins from) {
        from.allowance -= from.room;
        allotted -= from.room;
        from.room = 0;
    }

    /// Takes all blocks of a shard out. Inside, or with the lane claimed.
    void evict(StreamShard shard, AddressBatch evicted) {
        for (LaneBins each : bins) {
            if (each.small == shard) {
                each.evictAll(evicted);
                takeRoom(each);
            }
        }
        if (largeBytes != 0 && largeBins.large == shard) {
            evictLarge(evicted);
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
        long bytes = largeBins.large == shard ? largeBytes : 0;
        for (LaneBins each : (LaneBins[]) BINS.getAcquire(this)) {
            bytes += each.small == shard ? each.bytes() : 0;
        }
        return bytes;
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
        StreamShard large = largeBins.large;
        Invariant.check(
                largeBytes == 0 || (large != null && large.isLive(largeAddress, largeBytes)),
                "the large block is live",
                largeAddress);
    }

    private static VarHandle handle(String field, Class<?> type) {
        try {
            return MethodHandles.lookup().findVarHandle(Lane.class, field, type);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
