package io.cistern.async;

import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Finds and removes entries by address, of a block or of a stream, without Java heap, since a free must not fail for
/// lack of it.
///
/// It uses open addressing in a power of two of slots. A removed entry leaves a mark until the table is
/// rebuilt.
///
/// Invariant: at most half of the slots are taken, by entries and marks.
///
/// **Threads.** Any thread may call [#find] and [#any], without a lock; the other methods need one caller at a
/// time. The caller ensures that an entry's add happens before a search for it.
@SuppressWarnings("ReferenceEquality") // an entry equals only itself
final class AddressTable<E extends AddressTable.Entry> {
    /// An object with an address, which is never [Long#MIN_VALUE].
    abstract static class Entry {
        final long address;

        Entry(long address) {
            this.address = address;
        }
    }

    private static final class Mark extends Entry {
        Mark() {
            super(Long.MIN_VALUE);
        }
    }

    private static final Entry REMOVED = new Mark();
    private static final int MIN_SLOTS = 64;

    /// 2^64 divided by the golden ratio: addresses are equal in their low bits.
    private static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;

    private volatile AtomicReferenceArray<@Nullable Entry> table = new AtomicReferenceArray<>(MIN_SLOTS);

    private int entries;
    private int marks;
    private volatile boolean any;

    /// Returns whether the table has an entry.
    boolean any() {
        return any;
    }

    /// Returns the entry of an address, or null.
    @SuppressWarnings("unchecked") // nothing but marks and E is added, and no mark has the address of a block
    @Nullable
    E find(long address) {
        AtomicReferenceArray<@Nullable Entry> slots = table;
        int at = slot(address, slots.length());
        while (true) {
            Entry found = slots.get(at);
            if (found == null || found.address == address) {
                return (E) found;
            }
            at = (at + 1) & (slots.length() - 1);
        }
    }

    private static int slot(long address, int length) {
        return (int) ((address * SPREAD) >>> 32) & (length - 1);
    }

    /// Adds an entry whose address has none. If the Java heap is full, the table is unchanged.
    void add(E entry) {
        if (2 * (entries + marks + 1) > table.length()) {
            rebuild();
        }
        put(table, entry);
        entries++;
        any = true;
    }

    private void rebuild() {
        int length = Math.max(MIN_SLOTS, Integer.highestOneBit(entries + 1) << 3);
        AtomicReferenceArray<@Nullable Entry> slots = new AtomicReferenceArray<>(length);
        for (int at = 0; at < table.length(); at++) {
            Entry each = table.get(at);
            if (each != null && each != REMOVED) {
                put(slots, each);
            }
        }
        table = slots;
        marks = 0;
    }

    private static void put(AtomicReferenceArray<@Nullable Entry> slots, Entry entry) {
        int at = slot(entry.address, slots.length());
        while (slots.get(at) != null) {
            at = (at + 1) & (slots.length() - 1);
        }
        slots.set(at, entry);
    }

    /// Removes an entry of the table.
    void remove(E entry) {
        int at = slot(entry.address, table.length());
        while (table.get(at) != entry) {
            at = (at + 1) & (table.length() - 1);
        }
        table.set(at, REMOVED);
        entries--;
        marks++;
        any = entries > 0;
    }

    /// Visits all entries; the visitor may remove them.
    @SuppressWarnings("unchecked")
    void forEach(Consumer<E> visitor) {
        AtomicReferenceArray<@Nullable Entry> slots = table;
        for (int at = 0; at < slots.length(); at++) {
            Entry each = slots.get(at);
            if (each != null && each != REMOVED) {
                visitor.accept((E) each);
            }
        }
    }

    /// Removes all entries.
    void clear() {
        for (int at = 0; at < table.length(); at++) {
            table.set(at, null);
        }
        entries = 0;
        marks = 0;
        any = false;
    }
}
