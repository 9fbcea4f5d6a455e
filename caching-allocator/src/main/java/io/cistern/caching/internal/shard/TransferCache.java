package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.base.ShortLock;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.internal.threads.ThreadState;
import org.jspecify.annotations.Nullable;

/// Passes blocks of a shard from threads that only free them to threads that only allocate them, many at a
/// time. On the way through the shard, each block would be merged with its neighbours and split off again.
///
/// Each size class has a *shelf*, made when a thread cache misses, which records the thread cache that missed last.
/// A thread cache that has too many blocks leaves them on the shelf if another thread cache missed last. So if
/// threads free the blocks that they allocated, the shelves stay empty, and best fit sees all free memory.
///
/// **Invariants**: Σ count × byteSize of the shelves = `bytes` ≤ [#BOUND]; every address is a live block of the
/// shard, of the class's size.
///
/// **Threads.** Any; a lock is held while some addresses are copied. A thread that finds it held uses the shard.
public final class TransferCache {
    /// Enough for batches of different sizes; little compared to the bytes that thread caches may hold.
    static final long BOUND = 2L << 20;

    /// A shelf holds several batches, so that the threads need not be in step.
    private static final int SHELF_BYTES = 512 << 10;

    private static final int SHELF_BLOCKS = 256;

    /// The bytes that move at once: each move sends some cache lines from one processor to another.
    private static final int BATCH_BYTES = 128 << 10;

    private static final int BATCH_BLOCKS = 64;

    private static final class Batches {
        final long[] addresses;
        int count;
        ThreadState missing;

        Batches(int sizeClass, ThreadState missing) {
            long fitting = SHELF_BYTES / Sizes.byteSize(sizeClass);
            this.addresses = new long[Math.clamp(fitting, 1, SHELF_BLOCKS)];
            this.missing = missing;
        }
    }

    private final ShortLock lock = new ShortLock();
    private final Shard shard;
    private final @Nullable Batches[] shelves = new Batches[Sizes.CLASSES];

    /// Read without the lock as a guess; exact if the reader came after the writer.
    private long bytes;

    private long blockCount;

    TransferCache(Shard shard) {
        this.shard = shard;
    }

    /// Returns how many blocks of a class should move at once.
    public static int batch(int sizeClass) {
        return Math.clamp(BATCH_BYTES / Sizes.byteSize(sizeClass), 1, BATCH_BLOCKS);
    }

    /// Takes blocks for a thread cache that is empty.
    ///
    /// @param into receives at most `wanted` blocks
    public void take(ThreadState threadCache, int sizeClass, int wanted, AddressBatch into) {
        if (!lock.tryLockSoon()) {
            return;
        }
        try {
            Batches shelf = shelves[sizeClass];
            if (shelf == null) {
                shelf = new Batches(sizeClass, threadCache);
                shelves[sizeClass] = shelf;
            }
            shelf.missing = threadCache;
            move(shelf, sizeClass, Math.min(wanted, shelf.count), into);
        } finally {
            lock.unlock();
        }
    }

    /// Leaves blocks that a thread cache has no room for, if another thread cache missed last.
    ///
    /// @return how many blocks the shelf took, from the first on
    @SuppressWarnings("ReferenceEquality") // compares identities
    public int leave(ThreadState threadCache, int sizeClass, long[] blocks, int start, int count) {
        Batches shelf = shelves[sizeClass]; // a guess, so that most thread caches need no lock
        if (shelf == null || shelf.missing == threadCache || !lock.tryLockSoon()) {
            return 0;
        }
        try {
            long byteSize = Sizes.byteSize(sizeClass);
            long room = Math.min(shelf.addresses.length - shelf.count, (BOUND - bytes) / byteSize);
            int left = shard.isClosed() ? 0 : (int) Math.min(room, count); // its closer empties this later
            System.arraycopy(blocks, start, shelf.addresses, shelf.count, left);
            shelf.count += left;
            bytes += left * byteSize;
            blockCount += left;
            return left;
        } finally {
            lock.unlock();
        }
    }

    public void empty(AddressBatch evicted) {
        if (bytes == 0 && !shard.isClosed()) {
            return;
        }
        try (ShortLock _ = lock.hold()) {
            for (int sizeClass = 0; sizeClass < shelves.length; sizeClass++) {
                Batches shelf = shelves[sizeClass];
                if (shelf != null) {
                    move(shelf, sizeClass, shelf.count, evicted);
                }
            }
        }
    }

    private void move(Batches shelf, int sizeClass, int count, AddressBatch into) {
        into.addAll(shelf.addresses, shelf.count - count, shelf.count);
        shelf.count -= count;
        bytes -= count * Sizes.byteSize(sizeClass);
        blockCount -= count;
    }

    /// Bytes of the blocks here; a guess while other threads change it, else exact.
    public long bytes() {
        return bytes;
    }

    /// Corrects the shard's counts: blocks here are not allocated.
    public void addTo(ShardTotals totals) {
        totals.heldByThreadCaches(blockCount, bytes);
    }

    void checkInvariants() {
        try (ShortLock _ = lock.hold()) {
            long sum = 0;
            for (int sizeClass = 0; sizeClass < shelves.length; sizeClass++) {
                Batches shelf = shelves[sizeClass];
                sum += shelf == null ? 0 : check(shelf, Sizes.byteSize(sizeClass));
            }
            Invariant.check(sum == bytes, "bytes in batches", sum - bytes);
            Invariant.check(sum <= BOUND, "a transfer cache keeps its bound", sum);
        }
    }

    private long check(Batches shelf, long byteSize) {
        for (int i = 0; i < shelf.count; i++) {
            Invariant.check(
                    shard.isLive(shelf.addresses[i], byteSize), "a block in a batch is live", shelf.addresses[i]);
        }
        return shelf.count * byteSize;
    }
}
