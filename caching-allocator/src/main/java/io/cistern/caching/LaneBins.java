package io.cistern.caching;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The small blocks of one stream that one lane keeps: a stack of addresses for each [size class][SizeClasses].
///
/// ```
/// stack    depth | limit | byteSize | batch | missed | address 0 | … | address limit − 1        longs
/// ```
///
/// *depth* is how many addresses there are, *limit* how many there may be, *byteSize* that of each block,
/// *batch* how many blocks the next miss takes, *missed* whether the stack was found empty since the limit
/// last rose.
///
/// A block is pushed only where its bytes fit into [#room], which the lane gives out of its bound; a block
/// popped gives them back.
///
/// **Invariants**: `room = allowance − Σ depth × byteSize`; 0 ≤ room; depth ≤ limit; every address is a
/// live block of [#small], of the class's size.
///
/// Plain data; whoever has [entered][Lane#enter] the lane reads and writes it.
final class LaneBins {
    private static final int DEPTH = 0;
    private static final int LIMIT = 1;
    private static final int BYTE_SIZE = 2;
    private static final int BATCH = 3;
    private static final int MISSED = 4;
    private static final int FIRST = 5;

    /// A stack's first limit, and what a miss takes at most, in bytes and in blocks.
    private static final long BATCH_BYTES = 64 << 10;

    private static final int BATCH_BLOCKS = 32;

    /// The stack of a class that was not used yet. Never written to: it is empty and full.
    private static final long[] UNUSED = new long[FIRST];

    final long key;

    @Nullable
    StreamShard small;

    @Nullable
    StreamShard large;

    /// Addresses that are known to lie in the shards: those of one arena each, as long as the shards are
    /// there. None where memory comes in segments, which may go and come again for another shard.
    long smallBase;
    long smallSpan;
    long largeBase;
    long largeSpan;

    /// Bytes that may be pushed.
    long room;
    /// What the lane gave these bins of its bound.
    long allowance;
    /// Whether the stream has ended, so that these bins are in no lane any more.
    boolean ended;

    private final long[][] stacks = new long[SizeClasses.COUNT][];
    /// Where the next search for room begins.
    private int cursor;

    LaneBins(long key) {
        this.key = key;
        Arrays.fill(stacks, UNUSED);
    }

    /// Bins that hold nothing and take nothing.
    static LaneBins ended() {
        LaneBins bins = new LaneBins(0);
        bins.ended = true;
        return bins;
    }

    /// Takes the address that was pushed last.
    ///
    /// @return 0 if there is none
    long pop(int sizeClass) {
        long[] stack = stacks[sizeClass];
        int depth = (int) stack[DEPTH];
        if (depth == 0) {
            return 0;
        }
        stack[DEPTH] = depth - 1L;
        room += stack[BYTE_SIZE];
        return stack[FIRST - 1 + depth];
    }

    /// Keeps an address.
    ///
    /// @return false if there is no room
    boolean push(int sizeClass, long address) {
        long[] stack = stacks[sizeClass];
        int depth = (int) stack[DEPTH];
        long left = room - stack[BYTE_SIZE];
        if (depth >= (int) stack[LIMIT] || left < 0) {
            return false;
        }
        stack[FIRST + depth] = address;
        stack[DEPTH] = depth + 1L;
        room = left;
        return true;
    }

    /// Whether an address is known to be one of the small shard.
    boolean knowsSmall(long address) {
        return Long.compareUnsigned(address - smallBase, smallSpan) < 0;
    }

    boolean knowsLarge(long address) {
        return Long.compareUnsigned(address - largeBase, largeSpan) < 0;
    }

    /// Learns a shard of the stream.
    ///
    /// @return false if these bins are of an earlier stream of the same handle
    boolean learn(StreamShard shard) {
        StreamShard known = shard.small ? small : large;
        if (known == null && shard.small) {
            small = shard;
        } else if (known == null) {
            large = shard;
        }
        return known == null || known == shard;
    }

    /// Learns where blocks of the stream are.
    void learn(Region region) {
        if (!region.keepsAddresses()) {
            return;
        }
        if (region.shard.small) {
            smallBase = region.address;
            smallSpan = region.byteSize;
        } else {
            largeBase = region.address;
            largeSpan = region.byteSize;
        }
    }

    boolean isOf(StreamShard shard) {
        return shard == small || shard == large;
    }

    /// Notes that a class had no block.
    ///
    /// @return how many to fetch
    int missed(int sizeClass) {
        long[] stack = used(sizeClass);
        stack[MISSED] = 1;
        long batch = stack[BATCH];
        stack[BATCH] = Math.min(batch * 2, firstLimit(sizeClass));
        return (int) batch;
    }

    /// Makes a place in a full stack: more places, if it was also found empty; or else the older half goes.
    void makePlace(Lane lane, int sizeClass, AddressBatch evicted) {
        long[] stack = used(sizeClass);
        int limit = (int) stack[LIMIT];
        if (stack[DEPTH] < limit) {
            return;
        }
        if (stack[MISSED] != 0) {
            stack[MISSED] = 0;
            stack[LIMIT] = limit * 2L;
            if (stack.length < FIRST + limit * 2) { // a limit that was halved left the places there
                stacks[sizeClass] = Arrays.copyOf(stack, FIRST + limit * 2);
            }
        } else {
            leave(lane, sizeClass, (limit + 1) / 2, evicted);
        }
    }

    /// Moves blocks to the depot of the shard, as far as it takes them.
    private void leave(Lane lane, int sizeClass, int count, AddressBatch evicted) {
        long[] stack = stacks[sizeClass];
        int left = small == null ? 0 : small.depot.leave(lane, sizeClass, stack, FIRST, count);
        drop(stack, left);
        evict(stack, count - left, evicted);
    }

    /// Makes room by halving stacks, beginning where the last such search ended.
    void makeRoom(long wanted, AddressBatch evicted) {
        for (int seen = 0; seen < 2 * SizeClasses.COUNT && room < wanted; seen++) {
            long[] stack = stacks[cursor];
            cursor = cursor + 1 == SizeClasses.COUNT ? 0 : cursor + 1;
            if (stack[DEPTH] > 0) {
                stack[LIMIT] = Math.max(1, stack[LIMIT] / 2);
                evict(stack, ((int) stack[DEPTH] + 1) / 2, evicted);
            }
        }
    }

    /// Takes the oldest of the largest blocks out, if they are larger than those of a class: so the bound
    /// holds the most blocks, and what goes costs one pass through the shard for many bytes.
    ///
    /// @return false if there is none
    boolean evictLarger(int sizeClass, AddressBatch evicted) {
        for (int larger = SizeClasses.COUNT - 1; larger > sizeClass; larger--) {
            if (stacks[larger][DEPTH] > 0) {
                evict(stacks[larger], 1, evicted);
                return true;
            }
        }
        return false;
    }

    /// Takes everything out.
    void evictAll(AddressBatch evicted) {
        if (bytes() == 0) {
            return;
        }
        for (long[] stack : stacks) {
            if (stack[DEPTH] > 0) {
                stack[BATCH] = 1;
                evict(stack, (int) stack[DEPTH], evicted);
            }
        }
    }

    /// The lowest, which were pushed first. What goes back was too much to fetch.
    private void evict(long[] stack, int count, AddressBatch evicted) {
        evicted.addAll(stack, FIRST, FIRST + count);
        stack[BATCH] = Math.max(1, stack[BATCH] / 2);
        drop(stack, count);
    }

    private void drop(long[] stack, int count) {
        int depth = (int) stack[DEPTH];
        System.arraycopy(stack, FIRST + count, stack, FIRST, depth - count);
        stack[DEPTH] = (long) depth - count;
        room += count * stack[BYTE_SIZE];
    }

    /// Makes the stack of a class if there is none.
    long[] used(int sizeClass) {
        long[] stack = stacks[sizeClass];
        if (stack[BYTE_SIZE] == 0) {
            int limit = firstLimit(sizeClass);
            stack = new long[FIRST + limit];
            stack[LIMIT] = limit;
            stack[BYTE_SIZE] = SizeClasses.byteSize(sizeClass);
            stack[BATCH] = 1;
            stacks[sizeClass] = stack;
        }
        return stack;
    }

    private static int firstLimit(int sizeClass) {
        return Math.clamp(BATCH_BYTES / SizeClasses.byteSize(sizeClass), 1, BATCH_BLOCKS);
    }

    /// The blocks that are here; a guess for those who have not entered.
    long blocks() {
        long blocks = 0;
        for (long[] stack : stacks) {
            blocks += stack[DEPTH];
        }
        return blocks;
    }

    /// Bytes of the blocks that are here; a guess for those who have not entered.
    long bytes() {
        return allowance - room;
    }

    /// The size of the largest block that is here, or 0; a guess for those who have not entered.
    long largestBytes() {
        long largest = 0;
        for (long[] stack : stacks) {
            largest = stack[DEPTH] > 0 ? Math.max(largest, stack[BYTE_SIZE]) : largest;
        }
        return largest;
    }

    /// Checks the invariants above.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        long held = 0;
        for (int sizeClass = 0; sizeClass < stacks.length; sizeClass++) {
            long[] stack = stacks[sizeClass];
            Invariant.check(stack[DEPTH] <= stack[LIMIT], "a stack keeps its limit", sizeClass);
            held += stack[DEPTH] * stack[BYTE_SIZE];
            for (int i = 0; i < (int) stack[DEPTH]; i++) {
                checkLive(stack[FIRST + i], stack[BYTE_SIZE]);
            }
        }
        Invariant.check(room >= 0, "bins keep their allowance", room);
        Invariant.check(held == allowance - room, "bytes in stacks", held);
    }

    private void checkLive(long address, long byteSize) {
        StreamShard shard = small;
        Invariant.check(shard != null && shard.isLive(address, byteSize), "a block in a lane is live", address);
    }
}
