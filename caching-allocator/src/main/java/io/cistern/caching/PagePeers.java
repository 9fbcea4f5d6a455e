package io.cistern.caching;

import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryLocation;
import java.util.List;
import java.util.stream.Stream;

/// Opens the pages of one device to other devices.
///
/// 1. Open new mappings to the peer, too.
/// 2. Wait for threads that began to map before: each holds the driver lock of its shard.
/// 3. Open all existing mappings, aliases included. If the driver refuses one, close all again.
///
/// **Threading.** One thread at a time, and never during sleep or wake, which map without those locks.
final class PagePeers {
    private final DeviceShards shards;
    private final PageTable table;
    private final PhysicalPages pages;

    PagePeers(DeviceShards shards, PageTable table) {
        this.shards = shards;
        this.table = table;
        this.pages = table.physical;
    }

    /// @throws CudaException if the driver refuses; then nothing changes
    void grant(int peer) {
        MemoryLocation place = MemoryLocation.device(peer);
        List<MemoryLocation> before = pages.accessors;
        if (before.contains(place)) {
            return;
        }
        List<MemoryLocation> all =
                Stream.concat(before.stream(), Stream.of(place)).toList();
        try {
            pages.accessors = all;
            shards.awaitGrowth();
            for (Mapping mapping : table.mappings()) {
                open(mapping, place);
            }
        } catch (CudaException | OutOfMemoryError failure) {
            pages.accessors = before;
            shards.awaitGrowth();
            for (Mapping mapping : table.mappings()) {
                close(mapping, place, failure);
            }
            throw failure;
        }
    }

    private void open(Mapping mapping, MemoryLocation place) {
        try {
            pages.setAccess(mapping, place, AccessRights.READ_WRITE);
        } catch (CudaException refusal) {
            if (table.has(mapping)) { // otherwise it has since been unmapped
                throw refusal;
            }
        }
    }

    private void close(Mapping mapping, MemoryLocation place, Throwable because) {
        try {
            pages.setAccess(mapping, place, AccessRights.NONE);
        } catch (CudaException second) {
            because.addSuppressed(second);
        }
    }
}
