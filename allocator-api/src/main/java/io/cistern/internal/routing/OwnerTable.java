package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/// Finds the owner of a block from its address, without locks, and lets each block be freed once.
///
/// **Idea.** Two live blocks of at least G bytes begin at least G bytes apart. So a table with one slot every G
/// bytes never has two of them in one slot, if it holds only blocks of G bytes or more. Two such tables, for G
/// = 64 KiB and 256 B, hold every block in the coarser one that its size allows: large blocks cost 16 bytes of
/// table, small ones never collide, and no record ever moves.
///
/// ```
/// address   48 … 25        24 … 16           coarse:  a slot 64 KiB,   chunks of 32 MiB
///           48 … 17        16 …  8           fine:    a slot 256 B,    chunks of 128 KiB
///           chunk number   slot (512)
///
/// chunk     number + 1 | mixed | unused … | record 0 | record 1 | … | record 511 | unused …      longs
/// record    address | state     byteSize << 16 | route
/// ```
///
/// A hash directory for each table holds its chunks by number. A chunk is made when the first block begins in
/// its addresses, and stays while the directory has room, since the driver reuses addresses. A full
/// directory grows, or drops its chunks without blocks if they are seven eighths of all. So it has at most [#FEW]
/// chunks, or 16 times as many as had blocks when it last grew. With a tighter bound, programs that cycle
/// through more addresses than they use at once would make the same chunks again and again.
///
/// **Steps.** Insert: find the slot by size and address, check that it is empty and that the other table
/// has no block of that address, write the owner, then the key (release). Remove: look for the key in both
/// tables, swing its state from live to freeing (compare-and-set, so that one of two frees loses), read the
/// owner, clear the key. Drain: swing the live records of a route to draining, so that their frees are
/// counted. A live or draining record may also bear marks, which send its free down the same slow path:
/// *used* ([BlockUses]), *of a graph* and *kept* ([CaptureRoutes]). The program has freed a kept block, so
/// it can't free it again.
///
/// **Threads.** Any. The thread that inserts owns the address, since the allocator gave it to no other
/// thread. The thread that removes owns the record from the compare-and-set until it clears the record.
/// Chunks are added under a lock and found by plain reads. If a reader misses a chunk by a race, it looks
/// again under the lock.
///
/// Threads with neighbouring blocks hardly write to the same cache line. A line holds four records: in the fine
/// table those of 1 KiB of addresses, in which no two blocks of that size begin.
///
/// **Cost.** Between the compare-and-sets of two frees lies a chain of dependent reads. To keep it short, the
/// directory leads to a chunk in one read.
///
/// **A chunk leaves** while other threads insert without a lock: 1. its number is negated, so no thread
/// finds it; 2. [ProcessFence#everywhere]; 3. if it has a block now, its number is restored. A thread that
/// inserts reads the number again after it wrote the key: either it sees that the chunk is leaving, and
/// waits for the lock to see the outcome, or step 3 sees its key.
public final class OwnerTable {
    /// Addresses of the device are below 2^49 (unified addressing since Pascal).
    public static final int ADDRESS_BITS = 49;

    static final int MAX_ROUTES = 1 << 16;

    private static final int SIZE_BITS = 48;

    /// The largest size of a block in bytes.
    static final long MAX_SIZE = (1L << SIZE_BITS) - 1;

    /// No owner: its size would be beyond the address space.
    static final long NONE = -1;

    private static final int FINE_SHIFT = 8;
    private static final int COARSE_SHIFT = 16;
    /// Large enough that a core's own cache holds the directory and the beginnings of all chunks for a million
    /// small blocks. With smaller chunks, each of their frees takes longer.
    private static final int SLOT_BITS = 9;
    private static final int SLOTS = 1 << SLOT_BITS;

    /// Longs before the first record: with the array's own header two cache lines, so that writes to the first
    /// records do not disturb threads that only read the chunk's number.
    private static final int HEADER = 14;

    /// In the header: not 0 if the other table must also be checked before a record is written. That is so for
    /// a fine chunk once large blocks began in its addresses, and for a coarse one once there is a fine chunk
    /// for some of its addresses.
    private static final int MIXED = 1;

    /// Longs after the last record, always 0: with the header of the next object, which may be another chunk,
    /// they fill a cache line.
    private static final int TRAILER = 6;

    /// The number of chunks that each table always retains; they take 32 MiB of the Java heap.
    static final int FEW = 1 << 12;

    private static final int RECORD = 2;

    private static final int ROUTE_BITS = Long.SIZE - SIZE_BITS;

    static final int LIVE = 1;
    static final int DRAINING = 2;
    static final int FREEING = 3;

    /// Added to live or draining if other streams use the block too.
    static final int USED = 4;

    /// Added to live or draining if a graph decides what its free does.
    static final int OF_GRAPH = 16;

    /// Added to live or draining once the program has freed the block and a graph keeps it.
    static final int KEPT = 32;

    /// Added to live while [#drain] reads the owner, which may have changed before: no other thread takes
    /// such a record.
    private static final int HELD = 8;

    private static final int MARKS = USED | HELD | OF_GRAPH | KEPT;

    private static final long STATE_MASK = 0xFF;

    /// 2^64 over the golden ratio: spreads numbers that differ in few bits.
    private static final long GOLDEN = 0x9E37_79B9_7F4A_7C15L;

    private static final VarHandle KEY = MethodHandles.arrayElementVarHandle(long[].class);

    /// The routes that records name, by index. A thread that frees a block comes after the thread that
    /// allocated it, which saw the route. Written by [Routes].
    Route[] routes = new Route[16];

    long[] @Nullable [] fine;
    private long[] @Nullable [] coarse;

    private final int few;

    /// The number of chunks in each directory, by its shift.
    private final int[] chunks = new int[COARSE_SHIFT + 1];

    public OwnerTable() {
        this(FEW, 64);
    }

    /// @param few how many chunks are always retained
    /// @param length the initial length of each directory, a power of two
    OwnerTable(int few, int length) {
        this.few = few;
        this.fine = directoryOf(length);
        this.coarse = directoryOf(length);
    }

    /// Records a block.
    ///
    /// @return false if a live block begins in the same slot, or in the other table at the same address, which
    ///     only an allocator that broke its contract can cause
    boolean insert(long address, long byteSize, int route) {
        if (byteSize < 1L << COARSE_SHIFT) {
            long[] chunk = find(fine, address >>> (FINE_SHIFT + SLOT_BITS));
            return write(chunk != null ? chunk : add(FINE_SHIFT, address), FINE_SHIFT, address, byteSize, route);
        }
        long[] chunk = find(coarse, address >>> (COARSE_SHIFT + SLOT_BITS));
        return write(chunk != null ? chunk : add(COARSE_SHIFT, address), COARSE_SHIFT, address, byteSize, route);
    }

    private boolean write(long[] chunk, int shift, long address, long byteSize, int route) {
        int at = slotOf(address, shift);
        if (chunk[at] != 0 || (chunk[MIXED] != 0 && isInOther(shift, address))) {
            return false;
        }
        chunk[at + 1] = (byteSize << ROUTE_BITS) | route;
        try {
            KEY.setRelease(chunk, at, address | LIVE);
            Tally.keepOrder();
            return (long) KEY.getOpaque(chunk, 0) > 0 || writeAgain(chunk, shift, address, byteSize, route);
        } catch (Throwable failure) {
            chunk[at] = 0; // no call
            throw failure;
        }
    }

    /// Writes a record into the chunk that its address has now, if the one that it was written into has left.
    private synchronized boolean writeAgain(long[] chunk, int shift, long address, long byteSize, int route) {
        if (chunk[0] > 0) {
            return true; // it stayed
        }
        chunk[slotOf(address, shift)] = 0;
        return write(add(shift, address), shift, address, byteSize, route);
    }

    /// Returns whether the table other than that of a shift has a block that begins at an address. It also
    /// marks a fine chunk in whose addresses a large block begins.
    private boolean isInOther(int shift, long address) {
        int other = shift == FINE_SHIFT ? COARSE_SHIFT : FINE_SHIFT;
        long[] chunk = find(directory(other), address >>> (other + SLOT_BITS));
        if (chunk == null) {
            return false;
        }
        if (chunk[MIXED] == 0) {
            chunk[MIXED] = 1;
        }
        return holds(chunk, slotOf(address, other), address);
    }

    /// Frees the block of a record.
    interface Freeing {
        /// Returns false if [#take] shows that the block is not live.
        ///
        /// @param owner the owner in the record, until another thread takes it; it contains the route
        boolean free(Route route, long owner, long[] chunk, int at, long address, long stream);
    }

    /// Finds the record of a block and frees the block.
    ///
    /// @return false if no live block begins at the address
    boolean remove(long address, long stream, Freeing freeing) {
        long[] chunk = find(fine, address >>> (FINE_SHIFT + SLOT_BITS));
        int at = slotOf(address, FINE_SHIFT);
        if (chunk == null || !holds(chunk, at, address)) {
            chunk = find(coarse, address >>> (COARSE_SHIFT + SLOT_BITS));
            at = slotOf(address, COARSE_SHIFT);
            if (chunk == null || !holds(chunk, at, address)) {
                return removeUnseen(address, stream, freeing);
            }
        }
        return found(chunk, at, address, stream, freeing);
    }

    /// Reads the owner once: it may change if the program frees twice.
    private boolean found(long[] chunk, int at, long address, long stream, Freeing freeing) {
        long owner = chunk[at + 1];
        return freeing.free(routeOf(owner), owner, chunk, at, address, stream);
    }

    /// Searches again under the lock, where no race hides a chunk.
    private boolean removeUnseen(long address, long stream, Freeing freeing) {
        for (int shift = FINE_SHIFT; shift <= COARSE_SHIFT; shift += COARSE_SHIFT - FINE_SHIFT) {
            long[] chunk = findLocked(shift, address);
            int at = slotOf(address, shift);
            if (chunk != null && holds(chunk, at, address)) {
                return found(chunk, at, address, stream, freeing);
            }
        }
        return false;
    }

    /// Returns the owner in a record that is not taken yet. It is not certain before [#take] returns the
    /// same owner.
    static long ownerIn(long[] chunk, int at) {
        return chunk[at + 1];
    }

    static long byteSizeOf(long owner) {
        return owner >>> ROUTE_BITS;
    }

    private static int indexOf(long owner) {
        return (int) owner & (MAX_ROUTES - 1);
    }

    /// Returns the route that made a block.
    Route routeOf(long owner) {
        return routes[indexOf(owner)];
    }

    /// Removes a live record that bears no mark.
    ///
    /// @return its owner, or [#NONE] if there is no such record of that address
    static long take(long[] chunk, int at, long address) {
        return take(chunk, at, address, LIVE);
    }

    /// Removes a record that is in the given state.
    ///
    /// @return its owner, or [#NONE] if there is no such record of that address
    static long take(long[] chunk, int at, long address, int state) {
        if (!KEY.compareAndSet(chunk, at, address | state, address | FREEING)) {
            return NONE;
        }
        long owner = chunk[at + 1];
        KEY.setRelease(chunk, at, 0L);
        return owner;
    }

    /// Returns the state of a record, for [#take], or 0 if it is not a live record of that address. Waits while it is
    /// held, which takes some instructions.
    static int stateOf(long[] chunk, int at, long address) {
        long state = (long) KEY.getAcquire(chunk, at) - address;
        while (isLive(state) && (state & HELD) != 0) {
            Thread.onSpinWait();
            state = (long) KEY.getAcquire(chunk, at) - address;
        }
        return isLive(state) ? (int) state : 0;
    }

    private static boolean isLive(long state) {
        long kind = state & ~MARKS;
        return kind == LIVE || kind == DRAINING;
    }

    /// Returns the owner of a live block, or [#NONE]. The answer is stale if another thread frees the block
    /// meanwhile.
    long ownerOf(long address) {
        long owner = seenOwnerOf(address);
        return owner != NONE ? owner : lockedOwnerOf(address);
    }

    /// Searches again under the lock, where no race hides a chunk.
    private synchronized long lockedOwnerOf(long address) {
        return seenOwnerOf(address);
    }

    private long seenOwnerOf(long address) {
        long[] chunk = chunkOf(address, FINE_SHIFT);
        if (chunk != null) {
            return chunk[slotOf(address, FINE_SHIFT) + 1];
        }
        chunk = chunkOf(address, COARSE_SHIFT);
        return chunk != null ? chunk[slotOf(address, COARSE_SHIFT) + 1] : NONE;
    }

    /// Marks a live block as used on other streams.
    ///
    /// @return false if no live block begins there, or the program has freed it
    boolean markUsed(long address) {
        return mark(address, KEPT, USED, 0);
    }

    /// Marks a live block, so that a graph decides what its free does.
    void markOfGraph(long address) {
        mark(address, 0, OF_GRAPH, 0);
    }

    /// Marks a live block as freed by the program and kept.
    ///
    /// @return false if no live block begins there, or it was kept before
    boolean keep(long address) {
        return mark(address, KEPT, KEPT, 0);
    }

    /// Makes a kept block the program's again.
    void revive(long address) {
        mark(address, 0, 0, KEPT);
    }

    boolean isKept(long address) {
        return isKept(address, FINE_SHIFT) || isKept(address, COARSE_SHIFT);
    }

    private boolean isKept(long address, int shift) {
        long[] chunk = chunkOf(address, shift);
        return chunk != null && (stateOf(chunk, slotOf(address, shift), address) & KEPT) != 0;
    }

    /// @param unless changes nothing if a record bears one of these marks
    private synchronized boolean mark(long address, int unless, int add, int remove) {
        return mark(address, FINE_SHIFT, unless, add, remove) || mark(address, COARSE_SHIFT, unless, add, remove);
    }

    private boolean mark(long address, int shift, int unless, int add, int remove) {
        long[] chunk = chunkOf(address, shift);
        if (chunk == null) {
            return false;
        }
        int at = slotOf(address, shift);
        int state;
        do {
            state = stateOf(chunk, at, address);
            if (state == 0 || (state & unless) != 0) {
                return false;
            }
        } while (!KEY.compareAndSet(chunk, at, address | state, address | ((state | add) & ~remove)));
        return true;
    }

    /// Returns the chunk with the live record of an address in one table, or null.
    private long @Nullable [] chunkOf(long address, int shift) {
        long[] chunk = find(directory(shift), address >>> (shift + SLOT_BITS));
        return chunk != null && stateOf(chunk, slotOf(address, shift), address) != 0 ? chunk : null;
    }

    /// Marks the live blocks of a route so that their frees are counted.
    ///
    /// @return the number of marked blocks
    long drain(int route) {
        return drain(whole(FINE_SHIFT), route) + drain(whole(COARSE_SHIFT), route);
    }

    private static long drain(long[] @Nullable [] directory, int route) {
        long marked = 0;
        for (long[] chunk : directory) {
            for (int at = HEADER; chunk != null && at < chunk.length; at += RECORD) {
                marked += drain(chunk, at, route) ? 1 : 0;
            }
        }
        return marked;
    }

    /// Holds the record while it reads the owner again: the block may have been freed, and the address may belong to
    /// another route's block now.
    private static boolean drain(long[] chunk, int at, int route) {
        while (true) {
            long key = (long) KEY.getAcquire(chunk, at);
            if ((key & STATE_MASK & ~MARKS) != LIVE || indexOf(chunk[at + 1]) != route) {
                return false;
            }
            if ((key & HELD) != 0) {
                Thread.onSpinWait(); // another drain has it
            } else if (KEY.compareAndSet(chunk, at, key, key | HELD)) {
                boolean isOurs = indexOf(chunk[at + 1]) == route;
                chunk[at] = isOurs ? key - LIVE + DRAINING : key; // no call, which could fail
                return isOurs;
            }
        }
    }

    interface Visitor {
        void record(long address, long owner, boolean isKept);
    }

    /// Returns a directory with all chunks that there are now, for a visit without the lock, which threads
    /// need to insert. A chunk that leaves meanwhile has no blocks.
    private synchronized long[] @Nullable [] whole(int shift) {
        return directory(shift);
    }

    /// Visits the live records, including those of draining routes; weakly consistent. The visitor may take locks.
    void forEachLive(Visitor visitor) {
        visit(whole(FINE_SHIFT), visitor);
        visit(whole(COARSE_SHIFT), visitor);
    }

    private static void visit(long[] @Nullable [] directory, Visitor visitor) {
        for (long[] chunk : directory) {
            for (int at = HEADER; chunk != null && at < chunk.length; at += RECORD) {
                long key = (long) KEY.getAcquire(chunk, at);
                if (isLive(key & STATE_MASK)) {
                    visitor.record(key & ~STATE_MASK, chunk[at + 1], (key & KEPT) != 0);
                }
            }
        }
    }

    /// Returns the number of chunks.
    synchronized int chunkCount() {
        return chunks[FINE_SHIFT] + chunks[COARSE_SHIFT];
    }

    private static boolean holds(long[] chunk, int at, long address) {
        return (chunk[at] & ~STATE_MASK) == address;
    }

    private static int slotOf(long address, int shift) {
        return HEADER + ((int) (address >>> shift) & (SLOTS - 1)) * RECORD;
    }

    private static long @Nullable [] find(long[] @Nullable [] directory, long number) {
        int at = homeOf(number) & (directory.length - 1);
        long[] chunk = directory[at];
        return chunk == null || chunk[0] == number + 1 ? chunk : findFrom(directory, at + 1, number);
    }

    private static long @Nullable [] findFrom(long[] @Nullable [] directory, int from, long number) {
        for (int at = from; ; at++) {
            long[] chunk = directory[at & (directory.length - 1)];
            if (chunk == null || chunk[0] == number + 1) {
                return chunk;
            }
        }
    }

    private static int homeOf(long number) {
        return (int) ((number * GOLDEN) >>> 32);
    }

    private synchronized long @Nullable [] findLocked(int shift, long address) {
        return find(directory(shift), address >>> (shift + SLOT_BITS));
    }

    private synchronized long[] add(int shift, long address) {
        long number = address >>> (shift + SLOT_BITS);
        long[] present = find(directory(shift), number);
        if (present != null) {
            return present;
        }
        long[] chunk = new long[HEADER + SLOTS * RECORD + TRAILER];
        chunk[0] = number + 1;
        chunk[MIXED] = shift == FINE_SHIFT ? largeIn(number) : smallIn(number);
        put(shift, chunk);
        return chunk;
    }

    /// Returns a number other than 0 if large blocks begin in the addresses of a fine chunk. It also marks the
    /// coarse chunk, which now has a fine one.
    private long largeIn(long number) {
        long address = number << (FINE_SHIFT + SLOT_BITS);
        long[] chunk = find(coarse, address >>> (COARSE_SHIFT + SLOT_BITS));
        if (chunk == null) {
            return 0;
        }
        chunk[MIXED] = 1;
        return chunk[slotOf(address, COARSE_SHIFT)] | chunk[slotOf(address + (1 << COARSE_SHIFT), COARSE_SHIFT)];
    }

    /// Returns 1 if there is a fine chunk in the addresses of a coarse one, else 0.
    private long smallIn(long number) {
        long first = number << (COARSE_SHIFT - FINE_SHIFT);
        for (long fineNumber = first; fineNumber < first + (1 << (COARSE_SHIFT - FINE_SHIFT)); fineNumber++) {
            if (find(fine, fineNumber) != null) {
                return 1;
            }
        }
        return 0;
    }

    /// Adds a chunk to its directory. It keeps the directory at most half full, so that most chunks are found
    /// at their home.
    private void put(int shift, long[] chunk) {
        if (isFull(shift)) {
            shrink(shift);
        }
        if (isFull(shift)) { // the chunks are few, or most of them have blocks by now
            setDirectory(shift, grown(directory(shift)));
        }
        chunks[shift]++;
        place(directory(shift), chunk);
    }

    private boolean isFull(int shift) {
        return 2 * (chunks[shift] + 1) > directory(shift).length;
    }

    /// Removes the chunks without blocks from a directory, unless they are few or there are many others.
    private void shrink(int shift) {
        long[] @Nullable [] directory = directory(shift);
        if (chunks[shift] < few || 8 * emptyIn(directory) < 7 * chunks[shift]) {
            return;
        }
        long[] @Nullable [] rest = directoryOf(directory.length); // while nothing has changed
        boolean fenced = false;
        try {
            negateEmpty(directory);
            if (ProcessFence.isSupported()) {
                ProcessFence.everywhere();
            } else {
                VarHandle.fullFence();
            }
            fenced = true;
        } finally {
            returnUnlessEmpty(directory, fenced);
        }
        chunks[shift] = 0;
        for (long[] chunk : directory) {
            if (chunk != null && chunk[0] > 0) {
                place(rest, chunk);
                chunks[shift]++;
            }
        }
        setDirectory(shift, rest);
    }

    private static int emptyIn(long[] @Nullable [] directory) {
        int count = 0;
        for (long[] chunk : directory) {
            count += chunk != null && isEmpty(chunk) ? 1 : 0;
        }
        return count;
    }

    private static void negateEmpty(long[] @Nullable [] directory) {
        for (long[] chunk : directory) {
            if (chunk != null && chunk[0] > 0 && isEmpty(chunk)) {
                chunk[0] = -chunk[0];
            }
        }
    }

    /// Gives chunks that were leaving their numbers back, if they have a block or must stay.
    private static void returnUnlessEmpty(long[] @Nullable [] directory, boolean fenced) {
        for (long[] chunk : directory) {
            if (chunk != null && chunk[0] < 0 && !(fenced && isEmpty(chunk))) {
                chunk[0] = -chunk[0];
            }
        }
    }

    private static boolean isEmpty(long[] chunk) {
        for (int at = HEADER; at < HEADER + SLOTS * RECORD; at += RECORD) {
            if ((long) KEY.getAcquire(chunk, at) != 0) {
                return false;
            }
        }
        return true;
    }

    private void setDirectory(int shift, long[] @Nullable [] directory) {
        if (shift == FINE_SHIFT) {
            fine = directory;
        } else {
            coarse = directory;
        }
    }

    private long[] @Nullable [] directory(int shift) {
        return shift == FINE_SHIFT ? fine : coarse;
    }

    private static long[] @Nullable [] directoryOf(int length) {
        return new long[length][];
    }

    private static long[] @Nullable [] grown(long[] @Nullable [] directory) {
        long[] @Nullable [] grown = directoryOf(2 * directory.length);
        for (long[] chunk : directory) {
            if (chunk != null) {
                place(grown, chunk);
            }
        }
        return grown;
    }

    private static void place(long[] @Nullable [] directory, long[] chunk) {
        int at = homeOf(chunk[0] - 1);
        while (directory[at & (directory.length - 1)] != null) {
            at++;
        }
        directory[at & (directory.length - 1)] = chunk;
    }
}
