package io.cistern.caching.internal.heap;

import io.cistern.errors.UnknownAddressException;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/// Finds the [AddressRange] of an address, by a walk over three arrays.
///
/// ```
/// address   48 … 39   38 … 30   29 … 21   20 … 0
///             root      middle    leaf      inside a 2 MiB slot
/// ```
///
/// Slots are entered when memory is mapped there. If a source's segments are not aligned to 2 MiB, two ranges may
/// share a slot: the end of one and the start of the next. The slot then refers to the higher one, which refers to
/// the one [below][AddressRange#below]. No range is shorter than a slot, so at most two share one.
///
/// **Threads.** Reading takes no lock: a thread that has a live address got it after its slot was entered, and
/// an entry for live memory does not change. Writers exclude each other.
public final class AddressRangeMap {
    private static final int SLOT_SHIFT = 21;
    private static final int LEVEL_SHIFT = 9;
    private static final int LEVEL_MASK = (1 << LEVEL_SHIFT) - 1;
    private static final int ROOT = 1 << 10;

    private final @Nullable AddressRange[][][] root = new AddressRange[ROOT][][];

    /// Returns the range of a live address, or null for an address that lies in no range.
    @Nullable
    public AddressRange find(long address) {
        long slot = address >>> SLOT_SHIFT;
        @Nullable AddressRange[] leaf = slot >>> (LEVEL_SHIFT * 2) < ROOT ? findLeaf(slot) : null;
        AddressRange range = leaf == null ? null : leaf[(int) slot & LEVEL_MASK];
        return range == null || address >= range.address ? range : range.below;
    }

    /// Returns the range of a live block; an address in no range is an [UnknownAddressException].
    public AddressRange get(long address) {
        AddressRange range = find(address);
        if (range == null) {
            throw new UnknownAddressException(address);
        }
        return range;
    }

    /// Makes the leaves for a part of a range, so that [#put] needs no memory of the Java heap.
    public synchronized void reserve(long address, long byteSize) {
        for (long slot = address >>> SLOT_SHIFT; slot <= (address + byteSize - 1) >>> SLOT_SHIFT; slot++) {
            leaf(slot);
        }
    }

    @SuppressWarnings("ReferenceEquality") // there is one object for each range
    public synchronized void put(AddressRange range, long address, long byteSize) {
        for (long slot = address >>> SLOT_SHIFT; slot <= (address + byteSize - 1) >>> SLOT_SHIFT; slot++) {
            @Nullable AddressRange[] leaf = leaf(slot);
            AddressRange other = leaf[(int) slot & LEVEL_MASK];
            if (other == null || other == range) {
                leaf[(int) slot & LEVEL_MASK] = range;
            } else if (other.address < range.address) {
                range.below = other;
                VarHandle.releaseFence(); // a reader that sees the range sees the one below
                leaf[(int) slot & LEVEL_MASK] = range;
            } else {
                other.below = range;
            }
        }
    }

    /// Removes a part of a range, if it was entered.
    @SuppressWarnings("ReferenceEquality")
    public synchronized void remove(AddressRange range, long address, long byteSize) {
        for (long slot = address >>> SLOT_SHIFT; slot <= (address + byteSize - 1) >>> SLOT_SHIFT; slot++) {
            @Nullable AddressRange[] leaf = findLeaf(slot);
            AddressRange entered = leaf == null ? null : leaf[(int) slot & LEVEL_MASK];
            if (leaf != null && entered == range) {
                boolean shared = slot == range.address >>> SLOT_SHIFT;
                leaf[(int) slot & LEVEL_MASK] = shared ? range.below : null;
            } else if (entered != null) {
                entered.below = null;
            }
        }
    }

    private @Nullable AddressRange @Nullable [] findLeaf(long slot) {
        @Nullable AddressRange[][] middle = root[(int) (slot >>> (LEVEL_SHIFT * 2))];
        return middle == null ? null : middle[(int) (slot >>> LEVEL_SHIFT) & LEVEL_MASK];
    }

    private @Nullable AddressRange[] leaf(long slot) {
        int top = (int) (slot >>> (LEVEL_SHIFT * 2));
        int middle = (int) (slot >>> LEVEL_SHIFT) & LEVEL_MASK;
        if (root[top] == null) {
            root[top] = new AddressRange[1 << LEVEL_SHIFT][];
        }
        if (root[top][middle] == null) {
            root[top][middle] = new AddressRange[1 << LEVEL_SHIFT];
        }
        return root[top][middle];
    }
}
