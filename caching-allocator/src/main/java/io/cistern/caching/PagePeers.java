package io.cistern.caching;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryLocation;
import java.util.ArrayList;
import java.util.List;

/// Opens the pages of one device to others.
///
/// 1. From now on what is mapped is open to the peer too. 2. Whoever began to map before has ended: he held the
/// driver lock of his shard. 3. All mappings that there are, aliases included, are opened. If the driver refuses
/// one, all are as before.
///
/// **Threading.** One at a time, and not beside sleeping and waking, which map without those locks.
final class PagePeers {
    private final DeviceCache cache;
    private final PageTable table;
    private final PhysicalPages pages;

    PagePeers(DeviceCache cache, PageTable table) {
        this.cache = cache;
        this.table = table;
        this.pages = table.pages;
    }

    /// @throws CudaException if the driver refuses; then nothing changes
    void grant(int peer) {
        MemoryLocation place = MemoryLocation.device(peer);
        List<MemoryLocation> before = pages.accessors;
        if (before.contains(place)) {
            return;
        }
        List<MemoryLocation> more = new ArrayList<>(before);
        more.add(place);
        List<MemoryLocation> all = List.copyOf(more);
        try {
            pages.accessors = all;
            cache.awaitGrowth();
            for (Mapping mapping : table.mappings()) {
                open(mapping, place);
            }
        } catch (CudaException | OutOfMemoryError failure) {
            pages.accessors = before;
            cache.awaitGrowth();
            for (Mapping mapping : table.mappings()) {
                close(mapping, place, failure);
            }
            throw failure;
        }
    }

    private void open(Mapping mapping, MemoryLocation place) {
        try {
            set(mapping, place, AccessRights.READ_WRITE);
        } catch (CudaException refusal) {
            if (table.has(mapping)) { // else it went meanwhile
                throw refusal;
            }
        }
    }

    private void close(Mapping mapping, MemoryLocation place, Throwable because) {
        try {
            set(mapping, place, AccessRights.NONE);
        } catch (CudaException second) {
            because.addSuppressed(second);
        }
    }

    private void set(Mapping mapping, MemoryLocation place, AccessRights rights) {
        pages.memory.setAccess(pages.device, mapping.address, mapping.page.byteSize, place, rights);
    }
}
