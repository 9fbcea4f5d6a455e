package io.cistern.caching;

import org.jspecify.annotations.Nullable;

/// What one thread keeps of one device's cache: small blocks by stream and size, and before them the
/// [block][LastFreed] that it freed last, of any size. So what a thread frees it gets again without a lock, last
/// in, first out.
///
/// A thread cache holds at most the bound of its [streams][ThreadCacheStreams] and the block freed last, which is
/// at most 64 MiB. Whoever has [entered][ThreadCacheEntry#enter] it reads and writes it.
///
/// **Useful or not.** Small blocks may hardly ever come again in their sizes; then the thread cache only costs,
/// and blocks pass it by, for longer and longer, until it is tried again.
final class ThreadCache extends LastFreed {
    /// Larger blocks always go to their shard, of any device.
    static final long LARGEST_KEPT = 64L << 20;

    /// Against a miss, which is 1: a hit saves a little more than a miss costs, so a thread cache pays from about
    /// one hit in three on.
    private static final int HIT = 2;

    private static final int MAX_USEFUL = 512;

    /// Requests that a useless thread cache is passed by before it is tried again; each time in vain, twice as
    /// many.
    private static final int FIRST_PAUSE = 4096;

    /// A page takes as long as some hundred cuts.
    private static final int SHORTAGES_A_PAGE = 64;

    private static final int LONGEST_PAUSE = 16 * FIRST_PAUSE;

    final int device;
    final ThreadCacheStreams streams = new ThreadCacheStreams(this);

    /// What is counted; see there who may write.
    final ThreadCacheCounters small;

    final ThreadCacheCounters large;

    /// The owner's, for what it moves to shards and from them.
    final AddressBatch batch = new AddressBatch();

    private final long largestKept;

    /// Hits against misses of small requests; below 0 by more than [#MAX_USEFUL] the thread cache is useless.
    private int usefulness;

    /// Misses for which there was no free block.
    private int shortages;

    /// How many requests still pass by, and how many will next time.
    private int passing;

    private int pause = FIRST_PAUSE;

    // Keeps the thread caches of different threads out of each other's cache lines.
    @SuppressWarnings("unused")
    private long p1, p2, p3, p4, p5, p6, p7, p8;

    /// Makes a thread cache.
    ///
    /// @param owned whether one thread alone uses it
    /// @param largestKept larger blocks always go to their shard; at most [#LARGEST_KEPT]
    ThreadCache(int device, boolean owned, long largestKept, DeviceCounters counters) {
        super(owned);
        this.device = device;
        this.largestKept = largestKept;
        this.small = new ThreadCacheCounters(true, counters);
        this.large = new ThreadCacheCounters(false, counters);
    }

    /// Makes the calling thread the owner; leaves in [#batch] what has to go back.
    void takeOver(Thread thread) {
        own(thread);
        while (!enter()) { // who claimed it leaves soon, whatever happens
            Thread.onSpinWait();
        }
        try {
            evictLast(batch);
            changeTo(ThreadCacheBins.ended(), batch);
        } finally {
            leave();
        }
    }

    /// Takes a block that the owner freed on the stream that it used last.
    ///
    /// @return its address, or 0
    long take(long byteSize, long stream) {
        boolean ofSmall = SizeClasses.has(byteSize);
        if (stream != lastStream || !(ofSmall || keepsLarge()) || !enter()) {
            return 0;
        }
        try {
            return ofSmall ? takeSmallCounted(byteSize) : takeLargeCounted(byteSize);
        } finally {
            leave();
        }
    }

    private long takeSmallCounted(long byteSize) {
        long address = takeSmall(SizeClasses.of(byteSize));
        if (address != 0) {
            small.took(byteSize);
            noteHit();
        }
        return address;
    }

    private long takeLargeCounted(long byteSize) {
        long address = takeLarge(byteSize);
        if (address != 0) {
            large.took(byteSize);
            large.hit(Sizes.rounded(byteSize, Sizes.GRANULE));
        }
        return address;
    }

    private void noteHit() {
        if (usefulness < MAX_USEFUL) { // no store, most of the time
            usefulness += HIT;
            pause = usefulness < MAX_USEFUL ? pause : FIRST_PAUSE;
        }
    }

    /// Notes that a small request found nothing.
    void foundNothing() {
        tryNext();
        if (--usefulness < -MAX_USEFUL) {
            usefulness = 0;
            passing = pause;
            pause = Math.min(2 * pause, LONGEST_PAUSE);
        }
    }

    /// Notes a miss for which a block would have to be cut.
    ///
    /// @return whether more memory may help, which is tried once in some such misses
    boolean isTurnToGrow() {
        return ++shortages % SHORTAGES_A_PAGE == 0;
    }

    /// A small request passed the thread cache by.
    void passedBy() {
        passing = Math.max(0, passing - 1);
    }

    /// Whether small blocks hardly ever come again in their sizes, so that the thread cache would only cost: they
    /// pass it by.
    boolean isUseless() {
        return passing > 0;
    }

    /// What is counted of small or of large blocks.
    ThreadCacheCounters counters(boolean ofSmall) {
        return ofSmall ? small : large;
    }

    /// Keeps a block that the owner frees on the stream that it used last.
    ///
    /// @return false if there is no room, or it may not be one of that stream
    boolean keep(long address, long byteSize, long stream) {
        boolean ofSmall = SizeClasses.has(byteSize);
        if (stream != lastStream || (ofSmall ? isUseless() : !keepsLarge()) || !enter()) {
            return false;
        }
        try {
            return ofSmall ? keepSmallCounted(address, byteSize) : keepLargeCounted(address, byteSize);
        } finally {
            leave();
        }
    }

    private boolean keepSmallCounted(long address, long byteSize) {
        boolean kept = last.knowsSmall(address) && keepSmall(address, SizeClasses.of(byteSize));
        if (kept) {
            small.gave(byteSize);
        }
        return kept;
    }

    private boolean keepLargeCounted(long address, long byteSize) {
        boolean kept = mayKeepLarge(byteSize) && last.knowsLarge(address) && keepLarge(address, byteSize);
        if (kept) {
            large.gave(byteSize);
        }
        return kept;
    }

    /// Keeps a block, and makes room for it. Inside. Where the Java heap has no memory for that, the block has to
    /// go.
    ///
    /// @param mayHold the most that the thread cache may hold now, at least one block
    /// @param evicted gets what has to go for that
    void keep(ThreadCacheBins into, long address, long byteSize, long mayHold, AddressBatch evicted) {
        long before = bytesOfLast();
        if (SizeClasses.has(before)) {
            streams.keep(into, takeSmallOut(), SizeClasses.of(before), mayHold, evicted);
        }
        if (holdsLarge()) {
            evicted.addInHand(takeLargeOut());
        }
        if (SizeClasses.has(byteSize)) {
            if (!keepSmall(address, SizeClasses.of(byteSize))) {
                streams.keep(into, address, SizeClasses.of(byteSize), mayHold, evicted);
            }
        } else if (!mayKeepLarge(byteSize) || !keepLarge(address, byteSize)) {
            evicted.addInHand(address);
        }
    }

    /// Whether a large block of this size may stand here at all.
    boolean mayKeepLarge(long byteSize) {
        return Long.compareUnsigned(byteSize - 1, largestKept) < 0;
    }

    /// Makes the bins of a shard's stream the last used. Inside.
    ///
    /// @return null if the stream has ended
    @Nullable
    ThreadCacheBins use(StreamShard shard, long stream, AddressBatch evicted) {
        ThreadCacheBins bins = shard.stream == Fences.key(stream) ? streams.of(shard) : null;
        if (bins != null) {
            changeTo(bins, evicted);
            lastStream = stream;
        }
        return bins;
    }

    /// Notes a miss.
    ///
    /// @param mayHold the most that the thread cache may hold now
    /// @return how many blocks to fetch: one for the caller, and no more than there is room for
    int missed(ThreadCacheBins from, int sizeClass, long mayHold) {
        if (!enter()) {
            return 1;
        }
        try {
            return from.missed(sizeClass, streams.fitting(from, sizeClass, mayHold));
        } finally {
            leave();
        }
    }

    /// Keeps blocks, of which the last is to be taken first, as far as there is room.
    void stock(ThreadCacheBins into, int sizeClass, long mayHold, AddressBatch blocks) {
        if (enter()) {
            try {
                streams.stock(into, sizeClass, mayHold, blocks);
            } finally {
                leave();
            }
        }
    }

    /// Takes all blocks of a shard out. Inside, or with the thread cache claimed.
    void evict(StreamShard shard, AddressBatch evicted) {
        streams.evict(shard, evicted);
        if (shard == shardOfLast()) {
            evictLast(evicted);
        }
    }

    /// Takes all blocks out. Inside, or with the thread cache claimed.
    void evictAll(AddressBatch evicted) {
        streams.evictAll(evicted);
        evictLast(evicted);
    }

    /// Takes all blocks of a stream that has ended out, and forgets it. Inside, or with the thread cache claimed.
    void end(StreamShard shard, AddressBatch evicted) {
        if (last.isOf(shard)) {
            evictLast(evicted);
        }
        streams.end(shard, evicted);
    }

    /// Bytes of a shard's blocks that are here; a guess while others change it, exact at rest.
    long bytesOf(StreamShard shard) {
        return streams.bytesOf(shard) + (shard == shardOfLast() ? bytesOfLast() : 0);
    }

    /// The size of the largest block that is here, or 0; a guess while others change it, exact at rest.
    long largestBytes() {
        return Math.max(bytesOfLast(), streams.largestBytes());
    }

    /// Corrects what shards counted for what is here and was handed out; a guess while others change it, exact at
    /// rest.
    void addTo(ShardTotals smallTotals, ShardTotals largeTotals) {
        streams.addTo(smallTotals);
        small.addTo(smallTotals);
        large.addTo(largeTotals);
        long lastBytes = bytesOfLast();
        if (lastBytes != 0) {
            (lastBytes <= Sizes.SMALL_LIMIT ? smallTotals : largeTotals).heldByThreadCaches(1, lastBytes);
        }
    }

    /// Inside, or with the thread cache claimed.
    void resetPeaks() {
        small.resetPeak();
        large.resetPeak();
    }

    /// Checks the invariants. Inside, or with the thread cache claimed.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        streams.checkInvariants();
        checkLast();
    }
}
