package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.caching.internal.shard.Shard;
import java.util.ArrayList;

/// The mappings that one [fill][WindowFill] makes in holes, by address: of idle pages, and of new pages.
///
/// [#map] and [#unmap] call the driver, so the caller does not hold the page table's lock; the other methods are called
/// under it.
final class NewMappings {
    private final PageTable table;
    final ArrayList<Mapping> all = new ArrayList<>(0);

    /// How many mappings, from the first on, have memory; are mapped; and were announced to the source.
    private int withMemory;

    private int mapped;
    private int announced;

    /// Mappings that could not be unmapped.
    private final ArrayList<Mapping> stuck = new ArrayList<>(0);

    /// The number of mappings for which the table has room.
    private int withRoom;

    NewMappings(PageTable table) {
        this.table = table;
    }

    /// Reserves Java heap for the next steps, so that no mapping is lost.
    void reserve() {
        stuck.ensureCapacity(all.size());
        table.beginFill(all);
        withRoom = all.size();
    }

    /// Creates the new pages, and maps all pages for the devices that may access them.
    void map() {
        PhysicalPages physical = table.physical;
        int opened = 0;
        for (int i = 0; i < all.size(); i++) {
            Mapping mapping = all.get(i);
            if (mapping.isHome()) {
                mapping.page.handle = physical.create(mapping.page.byteSize);
            }
            withMemory++;
            physical.map(mapping.address, mapping.page);
            mapped++;
            boolean runEnds = i + 1 == all.size() || all.get(i + 1).address != mapping.end;
            if (runEnds) {
                long from = all.get(opened).address;
                physical.setAccess(from, mapping.end - from);
                opened = i + 1;
            }
        }
        while (announced < all.size()) {
            physical.announceMapped(all.get(announced));
            announced++;
        }
    }

    /// Unmaps what [#map] has mapped, and releases the new pages; keeps those that the driver will not unmap.
    ///
    /// @param failure the cause; receives further failures as suppressed ones
    void unmap(Throwable failure) {
        for (int i = 0; i < all.size(); i++) {
            Mapping mapping = all.get(i);
            table.ranges.remove(mapping.arena, mapping.address, mapping.page.byteSize);
            if (i < mapped && !tryUnmap(mapping, i < announced, failure)) {
                stuck.add(mapping);
            } else if (i < withMemory && mapping.isHome()) {
                table.physical.release(mapping.page.handle, mapping.page.byteSize);
            }
        }
    }

    private boolean tryUnmap(Mapping mapping, boolean isAnnounced, Throwable failure) {
        try {
            if (isAnnounced) {
                return table.physical.tryUnmap(mapping);
            }
            table.physical.unmap(mapping.address, mapping.page.byteSize);
            return true;
        } catch (RuntimeException | Error second) {
            failure.addSuppressed(second);
            return false;
        }
    }

    /// Publishes the mappings as their pages' homes.
    void publish() {
        for (int i = 0; i < all.size(); i++) {
            table.comesHome(all.get(i));
        }
        table.endFill(withRoom);
    }

    /// Returns the idle pages to their homes, and records mappings that are stuck.
    ///
    /// @param shard the shard of the holes
    void undo(Shard shard) {
        for (int i = 0; i < all.size(); i++) {
            Mapping home = all.get(i).page.home;
            if (home != all.get(i)) {
                home.owner.returnPage(home, shard);
            }
        }
        for (int i = 0; i < stuck.size(); i++) {
            shard.spend(stuck.get(i));
            table.stuck(stuck.get(i));
        }
        table.endFill(withRoom);
    }
}
