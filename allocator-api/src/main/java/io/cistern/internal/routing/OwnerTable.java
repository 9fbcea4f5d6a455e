package io.cistern.internal.routing;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/// Finds the owner of a block from its address by an array walk, without locks, and lets each block be freed once.
///
/// **Idea.** Two live blocks of at least G bytes begin at least G bytes apart. So a table with one slot every G bytes never
/// has two of them in one slot, if it holds only blocks of G bytes or more. Three such tables, for G = 1 MiB, 16 KiB and 256
/// B, hold every block in the coarsest table that its size allows: large blocks cost 32 bytes of table, small ones never
/// collide, and nothing is hashed, chained or moved.
///
/// ```
/// address   48 … 35   34 … 21   20 … 15   14 … 8   7 … 0
///           root      page      chunk     slot     zero            fine   256 B slots, 64 chunks of 128
///           root      page      20 … 14: slot                      middle 16 KiB slots, 128
///           root      page      20: slot                           coarse 1 MiB slots, 2
///
/// record    key = address | state     stream     byteSize     route
/// ```
///
/// **Steps.** Insert: find the slot by size, check that it is empty, write the fields, then the key (release). Remove: look
/// into the tables of the page for the key, swing its state from live to freeing (compare-and-set, so that one of two frees
/// loses), read the fields, clear the key. Drain: swing the live records of a route to draining, so that their frees are
/// counted; a free sees either state and nothing else is needed on its path.
///
/// **Threads.** Any. The thread that inserts owns the address, since the allocator gave it to nobody else; the thread that
/// removes owns the record from the compare-and-set to the clearing.
///
/// Tables are made where addresses were seen and stay: the driver gives the same addresses again. At worst 4 KiB for each
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

    private static final int RECORD = 4;
    private static final int STREAM = 1;
    private static final int BYTE_SIZE = 2;
    private static final int ROUTE = 3;

    private static final int LIVE = 1;
    private static final int DRAINING = 2;
    private static final int FREEING = 3;
    private static final long STATE_MASK = 0xFF;

    private static final VarHandle KEY = MethodHandles.arrayElementVarHandle(long[].class);

    private final AtomicReferenceArray<@Nullable AtomicReferenceArray<@Nullable Page>> root =
            new AtomicReferenceArray<>(1 << (ADDRESS_BITS - PAGE_BITS - NODE_BITS));

    /// Records a block.
    ///
    /// @return false if a live block begins in the same slot, which only an allocator that broke its contract can cause
    boolean insert(long address, long byteSize, long stream, int route) {
        Page page = pageFor(address);
        long[] slots = page.slotsFor(address, byteSize);
        int at = slotOf(address, byteSize);
        if (slots[at] != 0) {
            return false;
        }
        slots[at + STREAM] = stream;
        slots[at + BYTE_SIZE] = byteSize;
        slots[at + ROUTE] = route;
        KEY.setRelease(slots, at, address | LIVE);
        return true;
    }

    /// Takes the record of a block away and gives its fields to the receiver.
    ///
    /// @return false if no live block begins at the address
    boolean remove(long address, long stream, Router receiver) {
        Page page = pageAt(address);
        if (page == null) {
            return false;
        }
        long[] slots = page.coarse;
        int at = coarseSlot(address);
        if (!holds(slots, at, address)) {
            slots = page.middle;
            at = middleSlot(address);
            if (slots == null || !holds(slots, at, address)) {
                slots = page.fine.getAcquire(chunkOf(address));
                at = fineSlot(address);
                if (slots == null || !holds(slots, at, address)) {
                    return false;
                }
            }
        }
        boolean draining = false;
        if (!KEY.compareAndSet(slots, at, address | LIVE, address | FREEING)) {
            if (!KEY.compareAndSet(slots, at, address | DRAINING, address | FREEING)) {
                return false;
            }
            draining = true;
        }
        long byteSize = slots[at + BYTE_SIZE];
        int route = (int) slots[at + ROUTE];
        KEY.setRelease(slots, at, 0L);
        receiver.removed(address, byteSize, stream, route, draining);
        return true;
    }

    /// Marks the live blocks of a route so that their frees are counted.
    ///
    /// @return how many were marked
    long drain(int route) {
        long[] marked = new long[1];
        forEachLive((slots, at) -> {
            long key = (long) KEY.getAcquire(slots, at);
            if (slots[at + ROUTE] == route
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
        for (int i = 0; i < root.length(); i++) {
            AtomicReferenceArray<@Nullable Page> node = root.getAcquire(i);
            for (int j = 0; node != null && j < NODE_SIZE; j++) {
                Page page = node.getAcquire(j);
                if (page != null) {
                    page.forEachLive(visitor);
                }
            }
        }
    }

    private static boolean holds(long[] slots, int at, long address) {
        return ((long) KEY.getAcquire(slots, at) & ~STATE_MASK) == address;
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
        if (address >>> ADDRESS_BITS != 0) {
            return null;
        }
        AtomicReferenceArray<@Nullable Page> node = root.getAcquire(nodeOf(address));
        return node == null ? null : node.getAcquire(pageOf(address));
    }

    private Page pageFor(long address) {
        Page page = pageAt(address);
        return page != null ? page : makePage(address);
    }

    private Page makePage(long address) {
        AtomicReferenceArray<@Nullable Page> node = root.getAcquire(nodeOf(address));
        if (node == null) {
            node = new AtomicReferenceArray<>(NODE_SIZE);
            AtomicReferenceArray<@Nullable Page> other = root.compareAndExchange(nodeOf(address), null, node);
            node = other != null ? other : node;
        }
        Page page = new Page();
        Page other = node.compareAndExchange(pageOf(address), null, page);
        return other != null ? other : page;
    }

    /// The tables of one 2 MiB page of addresses.
    private static final class Page {
        private static final VarHandle MIDDLE = middleHandle();

        final long[] coarse = new long[(1 << (PAGE_BITS - COARSE_BITS)) * RECORD];

        volatile long @Nullable [] middle;

        final AtomicReferenceArray<long @Nullable []> fine =
                new AtomicReferenceArray<>(1 << (PAGE_BITS - CHUNK_BITS));

        long[] slotsFor(long address, long byteSize) {
            if (byteSize >= 1L << COARSE_BITS) {
                return coarse;
            }
            if (byteSize >= 1L << MIDDLE_BITS) {
                long[] slots = middle;
                return slots != null ? slots : makeMiddle();
            }
            long[] slots = fine.getAcquire(chunkOf(address));
            return slots != null ? slots : makeFine(chunkOf(address));
        }

        private long[] makeMiddle() {
            long[] made = new long[(1 << (PAGE_BITS - MIDDLE_BITS)) * RECORD];
            long[] other = (long[]) MIDDLE.compareAndExchange(this, null, made);
            return other != null ? other : made;
        }

        private long[] makeFine(int chunk) {
            long[] made = new long[(SLOT_MASK + 1) * RECORD];
            long[] other = fine.compareAndExchange(chunk, null, made);
            return other != null ? other : made;
        }

        void forEachLive(RecordVisitor visitor) {
            visit(coarse, visitor);
            visit(middle, visitor);
            for (int i = 0; i < fine.length(); i++) {
                visit(fine.getAcquire(i), visitor);
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
