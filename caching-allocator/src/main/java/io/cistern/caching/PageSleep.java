package io.cistern.caching;

import io.cistern.caching.internal.base.Held;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.sleep.SleepingPage;
import io.cistern.caching.internal.sleep.SleepingPages;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.HostMemory;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimResult;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Puts one device's cache to sleep and wakes it.
///
/// **Sleep.** 1. Wait for the device. 2. Give back idle memory and aliased mappings, so that each page left has
/// one address and bytes that may be needed. 3. [Claim][PageTable#beginChange] these pages and have them
/// deregistered; a page that its source needs stays. 4. [Put them to sleep][SleepingPages].
///
/// **Wake.** 1. Forget pages whose blocks were all freed meanwhile. 2. Give the others memory and their bytes,
/// and register them again.
///
/// **Threading.** One thread at a time. While pages are claimed, no other thread moves, unmaps or releases
/// them; frees change only the blocks.
final class PageSleep {
    private final CudaDriver driver;
    private final DeviceCache cache;
    private final PageTable table;

    /// Each element has the pages that fell asleep together and still sleep.
    private final List<SleepingPages> asleep = new ArrayList<>();

    PageSleep(CudaDriver driver, DeviceCache cache, PageTable table) {
        this.driver = driver;
        this.cache = cache;
        this.table = table;
    }

    /// @throws io.cistern.cuda.CudaException if the driver refuses; then all pages are awake that can be
    TrimResult sleep(SleepMode mode, HostMemory host) {
        if (mode == SleepMode.DROP) {
            asleep.forEach(SleepingPages::dropKept);
        }
        if (cache.counters.reservedBytes() == 0) {
            return CacheTrim.left(cache, 0); // no wait: another's capture would forbid it
        }
        driver.devices().synchronize(cache.device);
        if (!asleep.isEmpty()) {
            takeBack();
        }
        long returned = cache.returns.trim(0, true);
        unmapAliased();
        returned += sleep(mode == SleepMode.KEEP ? host : null);
        return CacheTrim.left(cache, returned);
    }

    /// Unmaps aliased mappings, except those that the source needs. No work uses any of them.
    private void unmapAliased() {
        for (Shard shard : cache.shards.all()) {
            try (Held _ = shard.holdDriver()) {
                table.lent.unmap(shard);
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

    /// @param claimed receives the pages, sorted by address, also those claimed before a failure
    private void claim(Predicate<Page> which, List<@Nullable Page> claimed) {
        for (Shard shard : cache.shards.all()) {
            try (Held _ = shard.holdDriver()) {
                table.beginChange(shard, which, claimed);
            }
        }
        claimed.sort(Comparator.comparingLong(page -> Objects.requireNonNull(page).home.address));
    }

    /// Puts pages to sleep. Ends all claims whatever happens: each page is then awake or asleep.
    private long sleep(@Nullable HostMemory host) {
        List<@Nullable Page> claimed = new ArrayList<>();
        SleepingPages together = new SleepingPages(driver, table);
        asleep.add(together);
        try {
            claim(Page::maySleep, claimed);
            deregister(claimed, together);
            if (!together.isEmpty()) {
                together.fallAsleep(host);
            }
            return together.byteSize();
        } catch (RuntimeException | Error failure) {
            wakeAfter(together, failure);
            throw failure;
        } finally {
            endChange(claimed, false);
            try {
                together.settle();
            } finally {
                dropEmpty();
            }
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

    /// Moves the claimed pages that may sleep to `together`; the others stay claimed here.
    private void deregister(List<@Nullable Page> claimed, SleepingPages together) {
        together.reserve(claimed.size());
        for (int i = 0; i < claimed.size(); i++) {
            Page page = Objects.requireNonNull(claimed.get(i));
            SleepingPage sleeper = new SleepingPage(page, together.nextOffset());
            if (table.pages.mayUnmap(page.home)) {
                together.add(sleeper);
                claimed.set(i, null);
            }
        }
    }

    private static void wakeAfter(SleepingPages together, Throwable failure) {
        try {
            together.wake();
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
        }
    }

    /// Gives memory to all pages, or to none; [#settle] then decides.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    void wake() {
        if (asleep.isEmpty()) {
            return;
        }
        cache.returns.giveBackIdle();
        try {
            claimSleepers();
            for (int i = 0; i < asleep.size(); i++) {
                asleep.get(i).wake();
            }
        } catch (RuntimeException | Error failure) {
            settle(false);
            throw failure;
        }
    }

    /// Claims the sleeping pages, except those that are gone meanwhile.
    private void claimSleepers() {
        List<@Nullable Page> claimed = new ArrayList<>();
        boolean retained = false;
        try {
            claim(Page::isAsleep, claimed);
            Set<@Nullable Page> set = new HashSet<>(claimed);
            for (int i = 0; i < asleep.size(); i++) {
                asleep.get(i).retain(set);
            }
            retained = true;
        } finally {
            if (!retained) {
                endChange(claimed, true);
            }
        }
    }

    /// Ends a wake.
    ///
    /// @param awake whether the pages stay awake
    void settle(boolean awake) {
        try {
            for (int i = 0; !awake && i < asleep.size(); i++) {
                asleep.get(i).sleepAgain();
            }
        } finally {
            settleFrom(0);
        }
    }

    /// Finishes all of them, whatever one of them throws.
    private void settleFrom(int first) {
        if (first == asleep.size()) {
            dropEmpty();
            return;
        }
        try {
            asleep.get(first).settle();
        } finally {
            settleFrom(first + 1);
        }
    }

    private void dropEmpty() {
        for (int i = asleep.size() - 1; i >= 0; i--) {
            if (asleep.get(i).isEmpty()) {
                asleep.remove(i);
            }
        }
    }

    /// Drops the kept bytes; the pages are gone.
    void close() {
        asleep.forEach(SleepingPages::dropKept);
        asleep.clear();
    }
}
