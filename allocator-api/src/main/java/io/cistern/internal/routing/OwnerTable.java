package io.cistern.internal.routing;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/// Finds the owner of a block from its address by an array walk, without locks, and lets each block be freed once.
///
/// **Idea.** Two live blocks of at least G bytes begin at least G bytes apart. So a table with one slot every G bytes never
/// has two of them in one slot, if it holds only blocks of G bytes or more. Three such tables, for G = 1 MiB, 16 KiB and 256
/// B, hold every block in the coarsest table that its size allows: large blocks cost 16 bytes of table, small ones never
/// collide, and nothing is hashed, chained or moved.
///
/// ```
/// address   48 … 35   34 … 21   20 … 15   14 … 8   7 … 0
///           root      page      chunk     slot     zero            fine   256 B slots, 64 chunks of 128
///           root      page      20 … 14: slot                      middle 16 KiB slots, 128
///           root      page      20: slot                           coarse 1 MiB slots, 2
///
/// record    key = address | state     byteSize << 16 | route
/// ```
///
/// **Steps.** Insert: find the slot by size, check that it is empty, write the fields, then the key (release). Remove: look
/// into the tables of the page for the key, swing its state from live to freeing (compare-and-set, so that one of two frees
/// loses), read the fields, clear the key. Drain: swing the live records of a route to draining, so that their frees are
/// counted; a free sees either state and nothing else is needed on its path.
///
/// **Threads.** Any. The thread that inserts owns the address, since the allocator gave it to nobody else; the thread that
/// removes owns the record from the compare-and-set to the clearing. Tables are found by plain reads: a free comes after its
/// allocation in every correct program, and tables begin as zeros or have final fields, so a reader that meets a new one by a
/// race sees nothing worse than an empty one; an insert that sees none makes one by compare-and-set.
///
/// Tables are made where addresses were seen and stay: the driver gives the same addresses again. At worst 2 KiB for each
/// 32 KiB of addresses that small blocks begin in.
final class OwnerTable {
    /// Addresses of the device are below 2^49 (unified addressing since Pascal).
    static final int ADDRESS_BITS = 49;

    private static final int PAGE_BITS = 21;
    private static final int NODE_BITS = 14;
    private static final int NODE_SIZE = 1 << NODE_BITS;

    private static final int COARSE_BITS = 20;
    private static final int MIDDLE_BITS = 14;
    private static final int FINE_BITS = 8;
    private static final int CHUNK_BITS = 15;
    private static final long PAGE_MASK = (1L << PAGE_BITS) - 1;
    private static final int SLOT_MASK = 127;

    /// No owner: its size would be beyond the address space.
    static final long NONE = -1;

    /// Longs in a record: the key, then the owner.
    private static final int RECORD = 2;

    private static final int ROUTE_BITS = 16;
    static final int MAX_ROUTES = 1 << ROUTE_BITS;

    /// Larger blocks than the address space are none.
    static final int SIZE_BITS = Long.SIZE - ROUTE_BITS;


    private static final int LIVE = 1;
    private static final int DRAINING = 2;
    private static final int FREEING = 3;
    private static final long STATE_MASK = 0xFF;

    private static final VarHandle KEY = MethodHandles.arrayElementVarHandle(long[].class);
    private static final VarHandle NODE = MethodHandles.arrayElementVarHandle(Page[][].class);
    private static final VarHandle PAGE = MethodHandles.arrayElementVarHandle(Page[].class);
    private static final VarHandle SLOTS = MethodHandles.arrayElementVarHandle(long[][].class);

    private final Router router;
    private final @Nullable Page[] @Nullable [] root = new Page[1 << (ADDRESS_BITS - PAGE_BITS - NODE_BITS)][];

    OwnerTable(Router router) {
        this.router = router;
    }

    /// Records a block.
    ///
    /// @return false if a live block begins in the same slot, which only an allocator that broke its contract can cause
    boolean insert(long address, long byteSize, int route) {
        Page page = pageAt(address);
        if (page == null) {
            page = makePage(address);
        }
        long[] slots = page.slotsFor(address, byteSize);
        int at = slotOf(address, byteSize);
        if (slots[at] != 0) {
            return false;
        }
        slots[at + 1] = (byteSize << ROUTE_BITS) | route;
        KEY.setRelease(slots, at, address | LIVE);
        return true;
    }

    /// Finds the record of a block and lets the router free it.
    ///
    /// @return false if no live block begins at the address
    boolean remove(long address, long stream) {
        @Nullable Page @Nullable [] node = root[nodeOf(address)];
        Page page = node == null ? null : node[pageOf(address)];
        if (page == null) {
            return false;
        }
        long @Nullable [] slots = page.fine[chunkOf(address)];
        int at = fineSlot(address);
        if (slots == null || !holds(slots, at, address)) {
            slots = page.middle;
            at = middleSlot(address);
            if (slots == null || !holds(slots, at, address)) {
                slots = page.coarse;
                at = coarseSlot(address);
            }
        }
        return router.free(slots, at, address, stream);
    }

    /// The owner in a record that nobody has taken yet: not to be relied on before [#take] returns the same.
    static long ownerIn(long[] slots, int at) {
        return slots[at + 1];
    }

    /// Takes a live record away.
    ///
    /// @return its owner, or [#NONE] if there is no live record of that address
    static long take(long[] slots, int at, long address) {
        return take(slots, at, address | LIVE, address | FREEING);
    }

    /// Takes a record away that [#drain] marked.
    ///
    /// @return its owner, or [#NONE] if there is no such record of that address
    static long takeDraining(long[] slots, int at, long address) {
        return take(slots, at, address | DRAINING, address | FREEING);
    }

    private static long take(long[] slots, int at, long expected, long freeing) {
        if (!KEY.compareAndSet(slots, at, expected, freeing)) {
            return NONE;
        }
        long owner = slots[at + 1];
        KEY.setRelease(slots, at, 0L);
        return owner;
    }

    /// Marks the live blocks of a route so that their frees are counted.
    ///
    /// @return how many were marked
    long drain(int route) {
        long[] marked = new long[1];
        forEachLive((slots, at) -> {
            long key = (long) KEY.getAcquire(slots, at);
            if (routeOf(slots[at + 1]) == route
                    && (key & STATE_MASK) == LIVE
                    && KEY.compareAndSet(slots, at, key, (key & ~STATE_MASK) | DRAINING)) {
                marked[0]++;
            }
        });
        return marked[0];
    }

    private interface RecordVisitor {
        void visit(long[] slots, int at);
    }

    private void forEachLive(RecordVisitor visitor) {
        for (int i = 0; i < root.length; i++) {
            @Nullable Page @Nullable [] node = (@Nullable Page[]) NODE.getAcquire(root, i);
            for (int j = 0; node != null && j < NODE_SIZE; j++) {
                Page page = (Page) PAGE.getAcquire(node, j);
                if (page != null) {
                    page.forEachLive(visitor);
                }
            }
        }
    }

    static long byteSizeOf(long owner) {
        return owner >>> ROUTE_BITS;
    }

    static int routeOf(long owner) {
        return (int) owner & (MAX_ROUTES - 1);
    }

    private static boolean holds(long[] slots, int at, long address) {
        return (slots[at] & ~STATE_MASK) == address;
    }

    private static int slotOf(long address, long byteSize) {
        if (byteSize < 1L << MIDDLE_BITS) {
            return fineSlot(address);
        }
        return byteSize < 1L << COARSE_BITS ? middleSlot(address) : coarseSlot(address);
    }

    private static int coarseSlot(long address) {
        return (int) ((address & PAGE_MASK) >>> COARSE_BITS) * RECORD;
    }

    private static int middleSlot(long address) {
        return (int) ((address & PAGE_MASK) >>> MIDDLE_BITS) * RECORD;
    }

    private static int fineSlot(long address) {
        return ((int) (address >>> FINE_BITS) & SLOT_MASK) * RECORD;
    }

    private static int chunkOf(long address) {
        return (int) ((address & PAGE_MASK) >>> CHUNK_BITS);
    }

    private static int nodeOf(long address) {
        return (int) (address >>> (PAGE_BITS + NODE_BITS));
    }

    private static int pageOf(long address) {
        return (int) (address >>> PAGE_BITS) & (NODE_SIZE - 1);
    }

    private @Nullable Page pageAt(long address) {
        @Nullable Page @Nullable [] node = root[nodeOf(address)];
        return node == null ? null : node[pageOf(address)];
    }

    private Page makePage(long address) {
        @Nullable Page @Nullable [] node = (@Nullable Page[]) NODE.getAcquire(root, nodeOf(address));
        if (node == null) {
            node = new Page[NODE_SIZE];
            @Nullable Page @Nullable [] other = (@Nullable Page[]) NODE.compareAndExchange(root, nodeOf(address), null, node);
            node = other != null ? other : node;
        }
        Page page = new Page();
        Page other = (Page) PAGE.compareAndExchange(node, pageOf(address), null, page);
        return other != null ? other : page;
    }

    /// The tables of one 2 MiB page of addresses.
    private static final class Page {
        private static final VarHandle MIDDLE = middleHandle();

        final long[] coarse = new long[(1 << (PAGE_BITS - COARSE_BITS)) * RECORD];

        long @Nullable [] middle;

        final long[] @Nullable [] fine = new long[1 << (PAGE_BITS - CHUNK_BITS)][];

        long[] slotsFor(long address, long byteSize) {
            if (byteSize >= 1L << COARSE_BITS) {
                return coarse;
            }
            if (byteSize >= 1L << MIDDLE_BITS) {
                long @Nullable [] slots = middle;
                return slots != null ? slots : makeMiddle();
            }
            long @Nullable [] slots = fine[chunkOf(address)];
            return slots != null ? slots : makeFine(chunkOf(address));
        }

        private long[] makeMiddle() {
            long[] made = new long[(1 << (PAGE_BITS - MIDDLE_BITS)) * RECORD];
            long @Nullable [] other = (long @Nullable []) MIDDLE.compareAndExchange(this, null, made);
            return other != null ? other : made;
        }

        private long[] makeFine(int chunk) {
            long[] made = new long[(SLOT_MASK + 1) * RECORD];
            long @Nullable [] other = (long @Nullable []) SLOTS.compareAndExchange(fine, chunk, null, made);
            return other != null ? other : made;
        }

        void forEachLive(RecordVisitor visitor) {
            visit(coarse, visitor);
            visit((long @Nullable []) MIDDLE.getAcquire(this), visitor);
            for (int i = 0; i < fine.length; i++) {
                visit((long @Nullable []) SLOTS.getAcquire(fine, i), visitor);
            }
        }

        private static void visit(long @Nullable [] slots, RecordVisitor visitor) {
            for (int at = 0; slots != null && at < slots.length; at += RECORD) {
                if ((long) KEY.getAcquire(slots, at) != 0) {
                    visitor.visit(slots, at);
                }
            }
        }

        private static VarHandle middleHandle() {
            try {
                return MethodHandles.lookup().findVarHandle(Page.class, "middle", long[].class);
            } catch (ReflectiveOperationException impossible) {
                throw new ExceptionInInitializerError(impossible);
            }
        }
    }
}
