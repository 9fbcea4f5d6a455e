package io.cistern.simulated.internal.memory;

import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.RangeAttributes;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// The advice for pages of managed memory, and their last prefetches.
public final class ManagedAdvice {
    private final BitSet readMostly = new BitSet();
    private final Map<MemoryLocation, BitSet> accessedBy = new LinkedHashMap<>();

    /// A page is in the set of at most one place.
    private final Map<MemoryLocation, BitSet> preferred = new HashMap<>();

    /// As above, for the last prefetches.
    private final Map<MemoryLocation, BitSet> prefetched = new HashMap<>();

    public void advise(MemoryAdvice advice, MemoryLocation place, long offset, long byteSize) {
        int from = page(offset);
        int to = page(offset + byteSize - 1) + 1;
        switch (advice) {
            case SET_READ_MOSTLY -> readMostly.set(from, to);
            case UNSET_READ_MOSTLY -> readMostly.clear(from, to);
            case SET_PREFERRED_LOCATION -> only(preferred, place, from, to);
            case UNSET_PREFERRED_LOCATION -> preferred.values().forEach(pages -> pages.clear(from, to));
            case SET_ACCESSED_BY -> pages(accessedBy, place).set(from, to);
            case UNSET_ACCESSED_BY -> pages(accessedBy, place).clear(from, to);
        }
    }

    public void prefetched(MemoryLocation target, long offset, long byteSize) {
        only(prefetched, target, page(offset), page(offset + byteSize - 1) + 1);
    }

    /// Returns what holds for all pages of a range.
    public RangeAttributes attributes(long offset, long byteSize) {
        int from = page(offset);
        int to = page(offset + byteSize - 1) + 1;
        return new RangeAttributes(
                hasAll(readMostly, from, to),
                ofAll(preferred, from, to).stream().findFirst(),
                ofAll(accessedBy, from, to),
                ofAll(prefetched, from, to).stream().findFirst());
    }

    public static RangeAttributes ofBoth(RangeAttributes one, RangeAttributes other) {
        return new RangeAttributes(
                one.readMostly() && other.readMostly(),
                one.preferredLocation()
                        .filter(place -> other.preferredLocation().equals(Optional.of(place))),
                one.accessedBy().stream().filter(other.accessedBy()::contains).toList(),
                one.lastPrefetch().filter(place -> other.lastPrefetch().equals(Optional.of(place))));
    }

    private static int page(long offset) {
        return (int) (offset / ManagedContents.PAGE_BYTES);
    }

    private static BitSet pages(Map<MemoryLocation, BitSet> places, MemoryLocation place) {
        return places.computeIfAbsent(place, _ -> new BitSet());
    }

    private static void only(Map<MemoryLocation, BitSet> places, MemoryLocation place, int from, int to) {
        places.values().forEach(pages -> pages.clear(from, to));
        pages(places, place).set(from, to);
    }

    private static boolean hasAll(BitSet pages, int from, int to) {
        return pages.nextClearBit(from) >= to;
    }

    private static List<MemoryLocation> ofAll(Map<MemoryLocation, BitSet> places, int from, int to) {
        return places.entrySet().stream()
                .filter(each -> hasAll(each.getValue(), from, to))
                .map(Map.Entry::getKey)
                .toList();
    }
}
