package io.cistern.caching;

import org.jspecify.annotations.Nullable;

/// What one thread keeps of one device's cache: small blocks by stream and size, and before them the block
/// that it freed last, of any size. So what a thread frees it gets again without a lock, last in, first
/// out.
///
/// The block freed last stands in the lane itself, because a pair costs about as many nanoseconds as there
/// are reads that wait for each other; through the bins there are four more.
///
/// A lane holds at most the bound of its [streams][LaneStreams] and the block freed last, which is at most 64
/// MiB. Whoever has [entered][LaneEntry#enter] it reads and writes it.
///
/// **Invariant**: the block freed last is a live block of the stream used last, of the size noted.
final class Lane extends LaneEntry {
    /// Larger blocks always go to their shard, of any device.
    static final long LARGEST_KEPT = 64L << 20;

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

    final int device;
    final LaneStreams streams = new LaneStreams(this);
    private final long largestKept;
    private final LaneCounters smallCounters;
    private final LaneCounters largeCounters;
    /// The stream that the owner used last, and its bins. Written by the owner, inside.
    long lastStream;

    LaneBins last = LaneBins.ended();

    /// The owner's, for what it moves to shards and from them.
    final AddressBatch batch = new AddressBatch();

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
        super(fenced);
        this.device = device;
        this.largestKept = largestKept;
        this.smallCounters = new LaneCounters(true, counters);
        this.largeCounters = new LaneCounters(false, counters);
    }

    /// Makes the calling thread the owner; leaves in [#batch] what has to go back.
    void takeOver(Thread thread) {
        own(thread);
        while (!enter()) {
            Thread.onSpinWait();
        }
        evictHot(batch);
        last = LaneBins.ended();
        leave();
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
            streams.keep(into, hotAddress, (int) hotSize, mayHold, evicted);
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
        LaneBins bins = streams.of(shard);
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
            streams.stock(into, sizeClass, mayHold, blocks);
            leave();
        }
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
        streams.evict(shard, evicted);
        if (shard == hotShard()) {
            evictHot(evicted);
        }
    }

    /// Takes all blocks of a stream that has ended out, and forgets it. Inside, or with the lane claimed.
    void end(StreamShard shard, AddressBatch evicted) {
        if (last.isOf(shard)) {
            evictHot(evicted);
        }
        streams.end(shard, evicted);
    }

    /// Bytes of a shard's blocks that are here; a guess while others change it, exact at rest.
    long bytesOf(StreamShard shard) {
        return streams.bytesOf(shard) + (hotShard() == shard ? bytes(hotSize) : 0);
    }

    /// Corrects what shards counted for what is here and was handed out; a guess while others change it, exact at
    /// rest.
    void addTo(ShardTotals small, ShardTotals large) {
        long hot = hotSize;
        boolean hotIsSmall = hot < SizeClasses.COUNT;
        long hotBlocks = hot == NOTHING ? 0 : 1;
        long blocks = streams.blocks() + (hotIsSmall ? hotBlocks : 0);
        long bytes = streams.bytes() + (hotIsSmall ? bytes(hot) : 0);
        smallCounters.addTo(small, blocks, bytes);
        largeCounters.addTo(large, hotIsSmall ? 0 : hotBlocks, hotIsSmall ? 0 : bytes(hot));
    }

    /// Inside, or with the lane claimed.
    void resetPeaks() {
        smallCounters.resetPeak();
        largeCounters.resetPeak();
    }

    /// Checks the invariants. Inside, or with the lane claimed.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        streams.checkInvariants();
        StreamShard hot = hotShard();
        Invariant.check(
                hotSize == NOTHING || (hot != null && hot.isLive(hotAddress, bytes(hotSize))),
                "the block freed last is live",
                hotAddress);
    }
}
