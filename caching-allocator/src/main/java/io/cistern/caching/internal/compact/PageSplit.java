package io.cistern.caching.internal.compact;

import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.CudaException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.threads.HeldLock;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Replaces one page by smaller ones under its live bytes. No address changes. A page on the host, which has no free
/// parts, is replaced by one on the device.
///
/// ```
/// before   addresses   | live  free  free  live |          one page
/// after                | live |  (hole)   | live |          two pages, at the same addresses
/// ```
///
/// 1. **Claim** the page and its free parts: no other thread moves it, releases it or allocates from these parts.
/// 2. **Copy**: create the smaller pages, map them at unused addresses, copy, wait, and unmap them there.
///    Pages that the device has no room for are created on the host.
/// 3. **Exchange**: unmap the page, map the smaller ones at its addresses.
/// 4. **Publish**: the smaller pages have their home there, the parts have no memory, the page's handle is released.
///
/// A failure undoes all steps in the reverse order: until step 4 the page has all bytes. Step 1 allocates the objects
/// that later steps need. Blocks on the page may be freed and allocated meanwhile, but no work may use them.
///
/// **Threads.** Used by one thread, which holds no lock while it calls the driver.
final class PageSplit {
    /// How often the driver is asked to map the page again, if it refuses.
    private static final int MAX_RESTORES = 8;

    private final PageTable table;
    private final PhysicalPages pages;
    private final CopySpace space;
    private final Page page;
    private final Mapping home;
    private final SparsePage sparse;
    private final boolean mayUseHost;
    private final int[] parts;

    /// The homes of the smaller pages.
    private final List<Mapping> homes = new ArrayList<>();

    private long scratch;

    /// How many of the smaller pages exist, are mapped at the copy addresses, and are mapped at home.
    private int created;

    private int mappedElsewhere;
    private int mappedHome;

    /// Whether the source agreed to the page leaving its addresses.
    private boolean mayGo;

    private boolean isAway;
    private boolean isClaimed;

    /// @param mayUseHost whether smaller pages that the device has no room for may be on the host
    PageSplit(PageTable table, CopySpace space, SparsePage sparse, boolean mayUseHost) {
        this.table = table;
        this.pages = table.physical;
        this.space = space;
        this.page = sparse.page;
        this.home = sparse.home;
        this.sparse = sparse;
        this.mayUseHost = mayUseHost;
        this.parts = new int[sparse.froms.length];
    }

    /// Replaces the page; returns false if it changed since the plan, or its source needs it where it is.
    ///
    /// @throws CudaException if the driver refuses; then nothing has changed
    boolean run() {
        List<@Nullable Page> pinned = new ArrayList<>(1);
        boolean done = false;
        try {
            done = claim(pinned) && copyAndExchange();
            return done;
        } finally {
            if (!done) {
                giveUp(pinned);
            }
        }
    }

    private boolean claim(List<@Nullable Page> pinned) {
        Shard shard = Shard.of(home.arena);
        try (HeldLock _ = shard.holdDriver()) {
            table.beginChange(shard, each -> each == page && each.home == home && each.mayBeReplaced(), pinned);
        }
        if (pinned.isEmpty() || !table.aliases.unmap(page)) {
            return false;
        }
        makeHomes();
        isClaimed = home.owner.claimFree(home.arena, sparse.froms, sparse.tos, parts);
        return isClaimed;
    }

    /// Allocates all Java objects that later steps need.
    private void makeHomes() {
        long at = home.address;
        for (int i = 0; i <= parts.length; i++) {
            long to = i < parts.length ? sparse.froms[i] : home.end;
            if (at < to) {
                homes.add(new Page(0, to - at, home.arena, at).home);
            }
            at = i < parts.length ? sparse.tos[i] : at;
        }
        table.reserve(homes.size());
        pages.reserveStranded(homes.size());
    }

    private boolean copyAndExchange() {
        try {
            create();
            copy();
            unmapElsewhere();
            mayGo = pages.mayUnmap(home);
            if (mayGo) {
                exchange();
            }
        } catch (RuntimeException | Error failure) {
            undo(failure);
            throw failure;
        }
        if (mayGo) {
            publish();
        } else {
            dropSmaller(null);
        }
        return mayGo;
    }

    private void create() {
        for (; created < homes.size(); created++) {
            create(homes.get(created).page);
        }
    }

    private void create(Page smaller) {
        try {
            smaller.handle = pages.create(smaller.byteSize);
        } catch (DeviceOutOfMemoryException | CudaException refusal) {
            if (!mayUseHost || !MemoryRefusal.isOutOfMemory(refusal)) {
                throw refusal;
            }
            createOnHost(smaller, refusal);
        }
    }

    /// @throws RuntimeException the device's refusal, if the host has no memory either
    private void createOnHost(Page smaller, RuntimeException refusal) {
        try {
            pages.createOnHost(smaller);
        } catch (CudaException second) {
            refusal.addSuppressed(second);
            throw second.result().endsContext() ? second : refusal;
        }
    }

    private void copy() {
        long total = sparse.keptBytes();
        scratch = space.addresses(total);
        for (Mapping each : homes) {
            long target = elsewhere(mappedElsewhere);
            pages.map(target, each.page);
            mappedElsewhere++;
        }
        pages.setAccess(scratch, total);
        space.copy(homes);
    }

    private void unmapElsewhere() {
        while (mappedElsewhere > 0) {
            Page smaller = homes.get(mappedElsewhere - 1).page;
            pages.unmap(elsewhere(mappedElsewhere - 1), smaller.byteSize);
            mappedElsewhere--;
        }
    }

    private long elsewhere(int index) {
        long at = scratch;
        for (int i = 0; i < index; i++) {
            at += homes.get(i).page.byteSize;
        }
        return at;
    }

    private void exchange() {
        pages.unmap(home.address, page.byteSize);
        isAway = true;
        for (Mapping each : homes) {
            pages.map(each.address, each.page);
            mappedHome++;
            pages.setAccess(each.address, each.page.byteSize);
        }
        homes.forEach(pages::announceMapped);
    }

    private void publish() {
        table.exchange(page, homes, parts);
        if (page.isOnHost()) {
            home.owner.sleeps(page.byteSize, false);
        }
        pages.counters.announceReleased(home.address, page.byteSize);
        for (int i = 0; i < homes.size(); i++) { // an iterator would need the Java heap
            Page smaller = homes.get(i).page;
            pages.counters.announceAcquired(homes.get(i).address, smaller.byteSize);
            if (smaller.isOnHost()) {
                home.owner.sleeps(smaller.byteSize, true);
            }
        }
        pages.release(page);
    }

    /// Puts the page back, and drops the smaller ones.
    private void undo(Throwable failure) {
        if (isAway) {
            restore(failure);
        } else if (mayGo) {
            tell(failure);
        }
        dropSmaller(failure);
    }

    /// @param failure the cause, or null if the source needs the page where it is
    private void dropSmaller(@Nullable Throwable failure) {
        int stranded = mappedElsewhere;
        boolean isIdle = space.isIdle();
        for (int i = 0; i < created; i++) {
            Page smaller = homes.get(i).page;
            if (i >= stranded || (isIdle && tryUnmap(elsewhere(i), smaller.byteSize, failure))) {
                pages.release(smaller);
            } else {
                pages.strand(smaller, elsewhere(i), !isIdle);
                space.abandon();
            }
        }
    }

    /// Announces the page to the source again, since it is still mapped.
    private void tell(Throwable failure) {
        try {
            pages.announceMapped(home);
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
        }
    }

    private boolean tryUnmap(long address, long byteSize, @Nullable Throwable failure) {
        try {
            pages.unmap(address, byteSize);
            return true;
        } catch (CudaException refusal) {
            if (failure != null) {
                failure.addSuppressed(refusal);
            }
            return refusal.result().endsContext();
        }
    }

    private void restore(Throwable failure) {
        boolean isBack = false;
        for (int i = 0; !isBack && i < MAX_RESTORES; i++) {
            isBack = tryRestore(failure);
        }
        if (!isBack) {
            failure.addSuppressed(new IllegalStateException("the driver refused to remap the memory at 0x"
                    + Long.toHexString(home.address) + ": " + page.byteSize + " bytes there are lost"));
        }
    }

    private boolean tryRestore(Throwable failure) {
        try {
            while (mappedHome > 0) {
                Mapping last = homes.get(mappedHome - 1);
                pages.unmap(last.address, last.page.byteSize);
                mappedHome--;
            }
            if (isAway) {
                pages.map(home.address, page);
                isAway = false;
            }
            pages.setAccess(home.address, page.byteSize);
            pages.announceMapped(home);
            return true;
        } catch (CudaException refusal) {
            failure.addSuppressed(refusal);
            return refusal.result().endsContext();
        }
    }

    /// Gives up the claims. A page that the driver would not map again stays claimed, so that no caller
    /// gets memory there.
    private void giveUp(List<@Nullable Page> pinned) {
        if (isAway) {
            return;
        }
        try {
            if (isClaimed) {
                home.owner.freeClaimed(parts);
            }
        } finally {
            if (!pinned.isEmpty()) {
                table.endChange(page, false);
            }
        }
    }
}
