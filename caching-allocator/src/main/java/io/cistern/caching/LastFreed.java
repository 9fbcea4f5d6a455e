package io.cistern.caching;

import org.jspecify.annotations.Nullable;

/// The block that a thread freed last, on the stream that it used last, before all stacks of the lane. A pair
/// costs about as many nanoseconds as there are reads that wait for each other; through a stack there are four
/// more.
///
/// **A small block** stands here as long as each such block is the next one asked for; else it is moved twice for
/// nothing, and small blocks go to their stacks at once. One in some is tried all the same.
///
/// **A large block** stands here alone. It serves the next request of its size, but only once a program has shown
/// that it asks for just the size that it freed: else best fit does better, which leaves room in one piece.
///
/// **Invariant**: it is a live block of the stream used last, of the size noted.
///
/// Whoever has [entered][LaneEntry#enter] the lane reads and writes it.
abstract class LastFreed extends LaneEntry {
    private static final long NOTHING = -1;

    /// How often in a row a program has to ask for just the large block that it freed. Without, two of five
    /// recorded programs reserved 1.3 and 2.3 % more.
    private static final int PROOF = 4;

    /// Added to the size of a large block that best fit is to have.
    private static final long UNPROVEN = 1L << 62;

    /// The stream that the owner used last, and its bins. Written by the owner, inside.
    long lastStream;

    LaneBins last = LaneBins.ended();

    /// The class of a small block, the size of a large one, which may be marked, or [#NOTHING].
    private long key = NOTHING;

    private long address;

    /// Whether small blocks stand here.
    private boolean inPairs = true;

    /// Requests in a row that the large block would have served, and the mark while they are too few.
    private int repeats;

    private long mark = UNPROVEN;

    /// @param owned see [LaneEntry]
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

    /// Lets the next small block stand here, because small requests miss: so one block more is kept, and five
    /// recorded programs reserve up to 1 % less.
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

    /// Keeps a large block, if there is none here.
    final boolean keepLarge(long block, long byteSize) {
        if (key != NOTHING && !moveToStack()) {
            return false;
        }
        key = rounded(byteSize) | mark;
        address = block;
        return true;
    }

    /// Takes the block out.
    final void evictLast(AddressBatch evicted) {
        if (key != NOTHING) {
            key = NOTHING;
            evicted.add(address);
        }
    }

    /// Takes a large block out because one is asked for, and notes whether it would have served.
    final void evictLarge(long byteSize, AddressBatch evicted) {
        boolean serves = key == (rounded(byteSize) | UNPROVEN);
        repeats = serves ? repeats + 1 : 0;
        mark = repeats < PROOF ? UNPROVEN : 0;
        if (key >= SizeClasses.COUNT) {
            evictLast(evicted);
        }
    }

    /// Makes other bins the last used.
    final void changeTo(LaneBins bins, AddressBatch evicted) {
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
        return key == NOTHING ? null : key < SizeClasses.COUNT ? last.small : last.large;
    }

    /// Its size, or 0; a guess for those who have not entered.
    final long bytesOfLast() {
        long now = key;
        if (now == NOTHING) {
            return 0;
        }
        return now < SizeClasses.COUNT ? SizeClasses.byteSize((int) now) : now & ~UNPROVEN;
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
