package io.cistern.caching;

import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.sleep.SleepingPages;
import io.cistern.cuda.CudaDriver;
import io.cistern.internal.threads.HeldLock;
import io.cistern.spi.HostMemory;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimResult;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Puts one device's cache to sleep and wakes it.
///
/// **Sleep.** 1. Wait for the device. 2. Give back idle memory and aliased mappings, so that each page left has
/// one address and bytes that may be needed. 3. [Claim][PageTable#beginChange] these pages and have them
/// deregistered; a page that its source needs stays. 4. [Put them to sleep][SleepingPages].
///
/// **Wake.** 1. Forget pages whose blocks have all been freed. 2. Give the other pages memory, restore
/// their bytes, and register them again.
///
/// **Threading.** One thread at a time. While pages are claimed, no other thread moves, unmaps or releases
/// them; frees change only the blocks.
final class PageSleep {
    private final CudaDriver driver;
    private final DeviceCache cache;
    private final PageTable table;

    private final SleepingPages asleep;

    PageSleep(CudaDriver driver, DeviceCache cache, PageTable table) {
        this.driver = driver;
        this.cache = cache;
        this.table = table;
        this.asleep = new SleepingPages(driver, table);
    }

    /// @throws io.cistern.cuda.CudaException if the driver refuses; every page that can be awake is then
    ///     awake
    TrimResult sleep(SleepMode mode, HostMemory host) {
        if (mode == SleepMode.DROP) {
            asleep.dropKept();
        }
        if (cache.counters.reservedBytes() == 0) {
            return cache.reclaim.leftAsleep(0); // no wait, which a capture elsewhere would forbid
        }
        driver.devices().synchronize(cache.counters.device);
        if (asleep.count() > 0) {
            takeBack();
        }
        long returned = cache.reclaim.trim(0, true);
        unmapAliased();
        returned += sleep(mode == SleepMode.KEEP ? host : null);
        return cache.reclaim.leftAsleep(returned);
    }

    /// Unmaps aliased mappings, except those that the source needs. No work uses any of them.
    private void unmapAliased() {
        for (Shard shard : cache.shards.all()) {
            try (HeldLock _ = shard.holdDriver()) {
                table.aliases.unmap(shard);
            }
        }
    }

    /// Puts pages to sleep that an earlier wake left awake.
    private void takeBack() {
        try {
            claimSleepers();
        } finally {
            settle(false);
        }
    }

    /// @param claimed receives the pages, sorted by address, including those claimed before a failure
    private void claim(Predicate<Page> which, List<@Nullable Page> claimed) {
        for (Shard shard : cache.shards.all()) {
            try (HeldLock _ = shard.holdDriver()) {
                table.beginChange(shard, which, claimed);
            }
        }
        claimed.sort(Comparator.comparingLong(page -> Objects.requireNonNull(page).home.address));
    }

    /// Puts pages to sleep. Always ends all claims: each page is then awake or asleep.
    private long sleep(@Nullable HostMemory host) {
        List<@Nullable Page> claimed = new ArrayList<>();
        int first = asleep.count();
        try {
            claim(Page::maySleep, claimed);
            deregister(claimed);
            return asleep.fallAsleep(first, host);
        } catch (RuntimeException | Error failure) {
            wakeAfter(first, failure);
            throw failure;
        } finally {
            endChange(claimed, false);
            asleep.settle(first);
        }
    }

    private void endChange(List<@Nullable Page> claimed, boolean asleep) {
        for (int i = 0; i < claimed.size(); i++) {
            Page page = claimed.get(i);
            if (page != null) {
                table.endChange(page, asleep);
            }
        }
    }

    /// Moves the claimed pages that may sleep to `asleep`; the others stay claimed here.
    private void deregister(List<@Nullable Page> claimed) {
        asleep.reserve(claimed.size());
        for (int i = 0; i < claimed.size(); i++) {
            if (asleep.tryAdd(Objects.requireNonNull(claimed.get(i)))) {
                claimed.set(i, null);
            }
        }
    }

    private void wakeAfter(int first, Throwable failure) {
        try {
            asleep.wake(first);
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
        }
    }

    /// Gives memory to all pages, or to none; [#settle] then keeps or undoes this.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    void wake() {
        if (asleep.count() == 0) {
            return;
        }
        cache.reclaim.giveBackIdle();
        try {
            claimSleepers();
            asleep.wake(0);
        } catch (RuntimeException | Error failure) {
            settle(false);
            throw failure;
        }
    }

    /// Claims the sleeping pages, and forgets those that are gone.
    private void claimSleepers() {
        List<@Nullable Page> claimed = new ArrayList<>();
        boolean retained = false;
        try {
            claim(Page::isAsleep, claimed);
            asleep.retain(new HashSet<>(claimed));
            retained = true;
        } finally {
            if (!retained) {
                endChange(claimed, true);
            }
        }
    }

    /// @param awake whether the pages stay awake
    void settle(boolean awake) {
        try {
            if (!awake) {
                asleep.sleepAgain();
            }
        } finally {
            asleep.settle(0);
        }
    }

    /// Drops the kept bytes; the pages are gone.
    void close() {
        asleep.dropKept();
    }
}
