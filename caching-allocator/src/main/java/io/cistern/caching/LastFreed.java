package io.cistern.caching;

import org.jspecify.annotations.Nullable;

/// The block that a thread freed last, on the stream that it used last, before all stacks of the thread cache. A
/// pair costs about as many nanoseconds as there are reads that wait for each other; through a stack there are
/// four more.
///
/// **A small block** stands here as long as each such block is the next one asked for; else it is moved twice for
/// nothing, and small blocks go to their stacks at once. One in some is tried all the same.
///
/// **A large block** stands here alone and serves the next request of its size, but only once a program has shown
/// that it asks for just the size that it freed. Until then large blocks go past: best fit does better, which
/// leaves room in one piece.
///
/// **Invariant**: it is a live block of the stream used last, of the size noted.
///
/// Whoever has [entered][ThreadCacheEntry#enter] the thread cache reads and writes it, but for what is noted of
/// large blocks that went past, which is the owner's.
abstract class LastFreed extends ThreadCacheEntry {
    private static final long NOTHING = -1;

    /// How often in a row a program has to ask for just the large block that it freed. Without, two of five
    /// recorded programs reserved more.
    private static final int PROOF = 4;

    /// The stream that the owner used last, and its bins. Written by the owner, inside.
    long lastStream;

    ThreadCacheBins last = ThreadCacheBins.ended();

    /// The class of a small block, the size of a large one, or [#NOTHING].
    private long key = NOTHING;

    private long address;

    /// Whether small blocks stand here.
    private boolean inPairs = true;

    /// The large block that went past last, if none was asked for since: its shard and size.
    private @Nullable StreamShard passedTo;

    private long passedBytes;

    /// Requests in a row that such a block would have served.
    private int repeats;

    /// @param owned see [ThreadCacheEntry]
    LastFreed(boolean owned) {
        super(owned);
    }

    /// Takes a small block, from here or its stack.
    ///
    /// @return its address, or 0
    final long takeSmall(int sizeClass) {
        if (sizeClass != key) {
            return last.pop(sizeClass);
        }
        key = NOTHING;
        last.countHit(sizeClass);
        return address;
    }

    /// Lets the next small block stand here, because small requests miss: so one block more is kept, and
    /// recorded programs reserve less.
    final void tryNext() {
        inPairs = true;
    }

    /// Takes the large block, if it serves the request.
    ///
    /// @return its address, or 0
    final long takeLarge(long byteSize) {
        if (byteSize <= 0 || rounded(byteSize) != key) {
            return 0;
        }
        key = NOTHING;
        return address;
    }

    /// Keeps a small block, if there is room for it without taking another out.
    final boolean keepSmall(long block, int sizeClass) {
        if (key != NOTHING && !moveToStack()) {
            return false;
        }
        if (inPairs || last.isTurnToTry(sizeClass)) {
            inPairs = true;
            key = sizeClass;
            address = block;
            return true;
        }
        return last.push(sizeClass, block);
    }

    private boolean moveToStack() {
        if (key >= SizeClasses.COUNT || !last.push((int) key, address)) {
            return false;
        }
        key = NOTHING;
        inPairs = false;
        return true;
    }

    /// Takes the small block out that stands here, whose stack is full.
    final long takeSmallOut() {
        key = NOTHING;
        inPairs = false;
        return address;
    }

    /// Takes the large block out that stands here.
    final long takeLargeOut() {
        key = NOTHING;
        return address;
    }

    /// Whether large blocks stand here.
    final boolean keepsLarge() {
        return repeats >= PROOF;
    }

    /// Notes that a large block that might stand here goes to its shard.
    final void largePassed(StreamShard shard, long byteSize) {
        passedTo = shard;
        passedBytes = rounded(byteSize);
    }

    /// Notes that a large block is asked for that is not here, and whether the one that went past would have
    /// served.
    final void largeMissed(StreamShard shard, long byteSize) {
        boolean serves = shard == passedTo && rounded(byteSize) == passedBytes;
        repeats = serves ? repeats + 1 : 0;
        passedTo = null;
    }

    /// Whether a large block is here; a guess for those who have not entered.
    final boolean holdsLarge() {
        return key >= SizeClasses.COUNT;
    }

    /// Keeps a large block, if there is none here.
    final boolean keepLarge(long block, long byteSize) {
        if (key != NOTHING && !moveToStack()) {
            return false;
        }
        key = rounded(byteSize);
        address = block;
        return true;
    }

    /// Takes the block out.
    final void evictLast(AddressBatch evicted) {
        if (key != NOTHING) {
            evicted.add(address);
            key = NOTHING;
        }
    }

    /// Takes a large block out.
    final void evictLarge(AddressBatch evicted) {
        if (holdsLarge()) {
            evictLast(evicted);
        }
    }

    /// Whether a stream with this shard is the one used last. The owner's.
    final boolean isOn(long stream, StreamShard shard) {
        return stream == lastStream && last.isOf(shard);
    }

    /// Makes other bins the last used.
    final void changeTo(ThreadCacheBins bins, AddressBatch evicted) {
        if (bins != last) {
            if (key != NOTHING && !moveToStack()) {
                evictLast(evicted);
            }
            last = bins;
        }
    }

    private static long rounded(long byteSize) {
        return Sizes.rounded(byteSize, Sizes.GRANULE);
    }

    /// The shard of the block, or null if there is none; a guess for those who have not entered.
    final @Nullable StreamShard shardOfLast() {
        long now = key;
        if (now == NOTHING) {
            return null;
        }
        return now < SizeClasses.COUNT ? last.small : last.shardOf(now);
    }

    /// Its size, or 0; a guess for those who have not entered.
    final long bytesOfLast() {
        long now = key;
        if (now == NOTHING) {
            return 0;
        }
        return now < SizeClasses.COUNT ? SizeClasses.byteSize((int) now) : now;
    }

    /// Checks the invariant above.
    ///
    /// @throws IllegalStateException if it does not hold
    final void checkLast() {
        StreamShard shard = shardOfLast();
        Invariant.check(
                key == NOTHING || (shard != null && shard.isLive(address, bytesOfLast())),
                "the block freed last is live",
                address);
    }
}
