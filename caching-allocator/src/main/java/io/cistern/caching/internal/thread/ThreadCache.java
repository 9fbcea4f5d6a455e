package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.internal.threads.ThreadState;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// Keeps blocks that one thread freed, so that such a block serves the thread's next request without a lock:
/// small blocks on [stacks][ThreadCacheBins] by stream and size, and in front of them the block freed last. The
/// stacks hold at most `bound` bytes; the block freed last may add up to 64 MiB.
///
/// **Steps.** [take][#take] looks at the block freed last, then at the top of the stack for the size.
/// [keep][#keep] moves the block freed last to its stack and puts the new one in its place. Both serve only the
/// stream used last. [ThreadCacheRefill] handles another stream, an empty stack and a full one.
///
/// **The block freed last** is kept in fields of this object: a pair takes as long as its chain of
/// dependent reads, to which a stack would add four.
/// - A small block stays here until the next one is freed, and is then pushed onto the stack of its class.
/// - A large block is kept only here. It serves the next request of its size, but only once the program has
///   shown that it requests exactly the sizes that it freed. Until then large blocks go to their shard: best
///   fit does better, because it keeps free room in one piece.
///
/// **The stacks** of all streams share the bound: the stream that receives blocks has all the room that the blocks of
/// others leave. If there is none, the older half of the block's class is evicted; if that class has no
/// blocks, the block itself is, because that costs less than making room for one block.
///
/// **Invariants**: the block freed last is a live block of the stream used last, and has the recorded size; Σ bytes of
/// the stacks ≤ `bound`.
///
/// **Threads.** A thread that has [entered][#tryEnter] or [claimed][#claim] the thread cache reads and writes
/// it; only the owner uses the record of large blocks that go to their shard. For other threads that walk over
/// it, the values are a guess while it changes, and else exact.
public final class ThreadCache extends ThreadState {
    /// Larger blocks always go to their shard, on any device.
    public static final long LARGEST_KEPT = 64L << 20;

    private static final long NOTHING = -1;

    private static final ThreadCacheBins[] NONE = {};

    /// How often in a row a program has to request exactly the large block that it freed. Without this proof, a
    /// block that one thread frees for another would stay with the first, and the other would have to grow.
    private static final int PROOF = 4;

    /// The stream that the owner used last, and its bins.
    long lastStream;

    ThreadCacheBins last = ThreadCacheBins.ended();

    /// For the block freed last: the class of a small one, the size of a large one; [#NOTHING] if there is none.
    private long key = NOTHING;

    private long address;

    /// The bins of the streams, at most one for each. Volatile for threads that walk over them.
    private volatile ThreadCacheBins[] bins = NONE;

    private final long bound;

    /// Counters; their class says which threads write them.
    final ThreadCacheCounters small;

    final ThreadCacheCounters large;

    /// Used by the owner only, for blocks on their way to shards and back.
    final AddressBatch batch = new AddressBatch();

    /// The last large block that went to its shard, if no large block was requested since: its shard and size.
    private @Nullable Shard passedTo;

    private long passedBytes;

    /// How many requests in a row such a block would have served.
    private int repeats;

    /// @param owned whether one thread alone uses it
    /// @param bound the most bytes of small blocks, without the block freed last
    public ThreadCache(boolean owned, long bound, DeviceCounters counters) {
        super(owned);
        this.bound = bound;
        this.small = new ThreadCacheCounters(true, counters);
        this.large = new ThreadCacheCounters(false, counters);
    }

    /// Resets this cache for a new owner, without a stream. Leaves blocks that must be freed in [#batch].
    void begin() {
        while (!tryEnter()) { // a claimer leaves soon, whatever happens
            Thread.onSpinWait();
        }
        try {
            evictLast(batch);
            changeTo(ThreadCacheBins.ended(), batch);
        } finally {
            leave();
        }
    }

    /// Takes a block that the owner freed on the stream used last.
    ///
    /// @return its address, or 0
    public long take(long byteSize, long stream) {
        boolean ofSmall = Sizes.hasClass(byteSize);
        if (stream != lastStream || !(ofSmall || keepsLarge()) || !tryEnter()) {
            return 0;
        }
        try {
            return ofSmall ? takeSmall(byteSize) : takeLarge(byteSize);
        } finally {
            leave();
        }
    }

    private long takeSmall(long byteSize) {
        int sizeClass = Sizes.classOf(byteSize);
        long taken;
        if (sizeClass == key) {
            last.countHit(sizeClass);
            taken = takeLast();
        } else {
            taken = last.pop(sizeClass);
        }
        if (taken != 0) {
            small.requested.add(byteSize);
        }
        return taken;
    }

    private long takeLarge(long byteSize) {
        if (byteSize <= 0 || rounded(byteSize) != key) {
            return 0;
        }
        large.requested.add(byteSize);
        large.hit(1, key);
        return takeLast();
    }

    private long takeLast() {
        key = NOTHING;
        return address;
    }

    boolean keepsLarge() {
        return repeats >= PROOF;
    }

    /// Records that a large block that could be kept goes to its shard.
    void largePassed(Shard shard, long byteSize) {
        passedTo = shard;
        passedBytes = rounded(byteSize);
    }

    /// Records a request for a large block that is not kept, and whether the last one that went to its shard
    /// would have served it.
    void largeMissed(Shard shard, long byteSize) {
        boolean serves = shard == passedTo && rounded(byteSize) == passedBytes;
        repeats = serves ? repeats + 1 : 0;
        passedTo = null;
    }

    /// Keeps a block that the owner frees on the stream used last.
    ///
    /// @return false if there is no room, or the block may belong to another stream
    public boolean keep(long block, long byteSize, long stream) {
        boolean ofSmall = Sizes.hasClass(byteSize);
        if (stream != lastStream || !(ofSmall || keepsLarge()) || !tryEnter()) {
            return false;
        }
        try {
            return ofSmall ? keepSmall(block, byteSize) : keepLarge(block, byteSize);
        } finally {
            leave();
        }
    }

    private boolean keepSmall(long block, long byteSize) {
        boolean kept = last.knowsSmall(block) && moveToStack();
        if (kept) {
            setLast(Sizes.classOf(byteSize), block);
            small.requested.remove(byteSize);
        }
        return kept;
    }

    private boolean keepLarge(long block, long byteSize) {
        boolean kept = last.knowsLarge(block) && mayKeepLarge(byteSize) && moveToStack();
        if (kept) {
            setLast(rounded(byteSize), block);
            large.requested.remove(byteSize);
        }
        return kept;
    }

    /// Moves the block freed last to its stack; returns false if the stack has no room, or the block is a
    /// large one.
    private boolean moveToStack() {
        if (key == NOTHING) {
            return true;
        }
        if (holdsLarge() || !last.push((int) key, address)) {
            return false;
        }
        key = NOTHING;
        return true;
    }

    private void setLast(long keyOfIt, long block) {
        key = keyOfIt;
        address = block;
    }

    /// Keeps a block and makes room for it. If the Java heap is too full for that, the block is evicted.
    ///
    /// @param evicted receives the evicted blocks
    void keep(ThreadCacheBins into, long block, long byteSize, AddressBatch evicted) {
        if (holdsLarge()) {
            evicted.addInHand(takeLast());
        } else if (key != NOTHING) {
            int sizeClass = (int) key;
            keepOnStack(into, takeLast(), sizeClass, evicted);
        }
        if (Sizes.hasClass(byteSize)) {
            setLast(Sizes.classOf(byteSize), block);
        } else if (mayKeepLarge(byteSize)) {
            setLast(rounded(byteSize), block);
        } else {
            evicted.addInHand(block);
        }
    }

    private void keepOnStack(ThreadCacheBins into, long block, int sizeClass, AddressBatch evicted) {
        boolean kept = false;
        try {
            kept = tryKeepOnStack(into, block, sizeClass, evicted);
        } catch (OutOfMemoryError noRoom) {
            // The free must not fail for want of Java heap.
        }
        if (!kept) {
            evicted.addInHand(block);
        }
    }

    private boolean tryKeepOnStack(ThreadCacheBins into, long block, int sizeClass, AddressBatch evicted) {
        into.makePlace(this, sizeClass, evicted);
        if (keepIfRoom(into, block, sizeClass)) {
            return true;
        }
        into.evictOlderHalf(sizeClass, evicted);
        return into.push(sizeClass, block);
    }

    /// Keeps a small block on its stack if no other block must be evicted for it.
    boolean keepIfRoom(ThreadCacheBins into, long block, int sizeClass) {
        into.use(sizeClass, 1);
        giveRoom(into);
        return into.push(sizeClass, block);
    }

    /// Sets the bound of these bins to all the room that the blocks of other streams leave.
    private void giveRoom(ThreadCacheBins into) {
        long most = bound;
        for (ThreadCacheBins each : bins) {
            most -= each == into ? 0 : each.bytes;
        }
        into.bound = most;
    }

    /// Whether a large block of this size may be kept at all.
    boolean mayKeepLarge(long byteSize) {
        return Long.compareUnsigned(byteSize - 1, LARGEST_KEPT) < 0;
    }

    /// Whether the stream of this shard is the one used last. Called by the owner only.
    boolean isOn(long stream, Shard shard) {
        return stream == lastStream && last.isOf(shard);
    }

    @Nullable
    ThreadCacheBins find(long stream) {
        for (ThreadCacheBins each : bins) {
            if (each.key == stream) {
                return each;
            }
        }
        return null;
    }

    /// Returns the bins of a shard's stream; makes them if there are none.
    ///
    /// @return null if the stream has ended
    @Nullable
    ThreadCacheBins of(Shard shard) {
        if (shard.isClosed()) { // read inside: a thread that closes it empties this cache later
            return null;
        }
        ThreadCacheBins present = find(shard.key);
        ThreadCacheBins found = present != null ? present : add(shard.key);
        return found.learn(shard) ? found : null;
    }

    private ThreadCacheBins add(long stream) {
        ThreadCacheBins added = new ThreadCacheBins(stream);
        ThreadCacheBins[] more = Arrays.copyOf(bins, bins.length + 1);
        more[bins.length] = added;
        bins = more;
        return added;
    }

    /// Switches to the bins of a shard's stream.
    ///
    /// @return null if the stream has ended
    @Nullable
    ThreadCacheBins changeTo(Shard shard, long stream, AddressBatch evicted) {
        ThreadCacheBins ofStream = shard.key == Fences.key(stream) ? of(shard) : null;
        if (ofStream != null) {
            changeTo(ofStream, evicted);
            lastStream = stream;
        }
        return ofStream;
    }

    private void changeTo(ThreadCacheBins next, AddressBatch evicted) {
        if (next != last) {
            if (!moveToStack()) {
                evictLast(evicted);
            }
            giveRoom(next);
            last = next;
        }
    }

    /// Records a miss; returns how many blocks to fetch: one for the caller, and no more than there is room for.
    int missed(ThreadCacheBins from, int sizeClass) {
        if (!tryEnter()) {
            return 1;
        }
        try {
            giveRoom(from);
            return from.missed(sizeClass);
        } finally {
            leave();
        }
    }

    /// Keeps as many blocks as there is room for; the last one is to be taken first.
    void stock(ThreadCacheBins into, int sizeClass, AddressBatch blocks) {
        if (!tryEnter()) {
            return;
        }
        try {
            if (!into.ended) {
                into.use(sizeClass, blocks.count);
                giveRoom(into);
                int kept = 0;
                while (kept < blocks.count && into.push(sizeClass, blocks.addresses[kept])) {
                    kept++;
                }
                blocks.removeFirst(kept);
            }
        } finally {
            leave();
        }
    }

    private void evictLast(AddressBatch evicted) {
        if (key != NOTHING) {
            evicted.add(address);
            key = NOTHING;
        }
    }

    /// Evicts the block freed last, if it is a large one.
    void evictLarge(AddressBatch evicted) {
        if (holdsLarge()) {
            evictLast(evicted);
        }
    }

    void evict(Shard shard, AddressBatch evicted) {
        for (ThreadCacheBins each : bins) {
            if (each.small == shard) {
                each.evictAll(evicted);
            }
        }
        if (shard == shardOfLast()) {
            evictLast(evicted);
        }
    }

    void evictAll(AddressBatch evicted) {
        for (ThreadCacheBins each : bins) {
            each.evictAll(evicted);
        }
        evictLast(evicted);
    }

    /// Evicts all blocks of a stream that has ended, and forgets the stream.
    void end(Shard shard, AddressBatch evicted) {
        if (last.isOf(shard)) {
            evictLast(evicted);
        }
        for (ThreadCacheBins each : bins) {
            if (each.isOf(shard)) {
                each.evictAll(evicted);
                bins = Arrays.stream(bins).filter(other -> other != each).toArray(ThreadCacheBins[]::new);
                each.end();
                each.addTo(small);
            }
        }
    }

    /// Whether the block freed last is a large one.
    boolean holdsLarge() {
        return key >= Sizes.CLASSES;
    }

    private static long rounded(long byteSize) {
        return Sizes.rounded(byteSize, Sizes.GRANULE);
    }

    private @Nullable Shard shardOfLast() {
        long now = key;
        if (now == NOTHING) {
            return null;
        }
        return now < Sizes.CLASSES ? last.small : last.large;
    }

    private long bytesOfLast() {
        long now = key;
        if (now == NOTHING) {
            return 0;
        }
        return now < Sizes.CLASSES ? Sizes.byteSize((int) now) : now;
    }

    long bytesOf(Shard shard) {
        long bytes = shard == shardOfLast() ? bytesOfLast() : 0;
        for (ThreadCacheBins each : bins) {
            bytes += each.small == shard ? each.bytes : 0;
        }
        return bytes;
    }

    /// Returns the size of the largest block in this thread cache, or 0.
    long largestBytes() {
        long largest = bytesOfLast();
        for (ThreadCacheBins each : bins) {
            largest = Math.max(largest, each.largestBytes());
        }
        return largest;
    }

    /// Corrects the shards' counts for blocks that are here and blocks that were handed out.
    void addTo(ShardTotals smallTotals, ShardTotals largeTotals) {
        for (ThreadCacheBins each : bins) {
            each.addTo(smallTotals);
        }
        small.addTo(smallTotals);
        large.addTo(largeTotals);
        long lastBytes = bytesOfLast();
        if (lastBytes != 0) {
            (lastBytes <= Sizes.SMALL_LIMIT ? smallTotals : largeTotals).heldByThreadCaches(1, lastBytes);
        }
    }

    void resetPeaks() {
        small.requested.resetPeak();
        large.requested.resetPeak();
    }

    void checkInvariants() {
        long sum = 0;
        for (ThreadCacheBins each : bins) {
            each.checkInvariants();
            sum += each.bytes;
        }
        Invariant.check(sum <= bound, "a thread cache keeps its bound", sum - bound);
        Shard shard = shardOfLast();
        Invariant.check(
                key == NOTHING || (shard != null && shard.isLive(address, bytesOfLast())),
                "the block freed last is live",
                address);
    }
}
