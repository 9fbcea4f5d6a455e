package io.cistern.caching;

import io.cistern.PinnedMemory;
import io.cistern.SleepMode;
import io.cistern.TrimResult;
import io.cistern.cuda.CudaDriver;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Sleeping and waking of one device's cache.
///
/// **Sleep.** 1. Wait for the device. 2. Give back what is idle, and mappings of pages at home elsewhere, so that
/// each page left has one address and bytes that somebody may want. 3. [Claim][PageTable#beginChange] these pages,
/// and have them deregistered; who needs one where it is keeps it. 4. [Put them to sleep][SleepingPages].
///
/// **Wake.** 1. Pages whose blocks were all freed meanwhile are let go. 2. The others get memory and their bytes,
/// and are registered again.
///
/// **Threading.** By one thread at a time. While pages are claimed nobody else moves, unmaps or releases them;
/// frees change only the blocks.
final class PageSleep {
    private final CudaDriver driver;
    private final DeviceCache cache;
    private final PageTable table;

    /// What fell asleep together and sleeps.
    private final List<SleepingPages> asleep = new ArrayList<>();

    PageSleep(CudaDriver driver, DeviceCache cache, PageTable table) {
        this.driver = driver;
        this.cache = cache;
        this.table = table;
    }

    boolean isEmpty() {
        return asleep.isEmpty();
    }

    /// @throws io.cistern.cuda.CudaException if the driver refuses; then all is awake that can be, and [#isEmpty]
    /// if that is all
    TrimResult sleep(SleepMode mode, PinnedMemory host) {
        if (mode == SleepMode.DROP) {
            asleep.forEach(SleepingPages::dropKept);
        }
        if (cache.reserved.bytes() == 0) {
            return CacheTrim.left(cache, 0); // without a wait, which a capture of somebody else's would forbid
        }
        driver.devices().synchronize(cache.device);
        if (!asleep.isEmpty()) {
            claimSleepers();
            settle(false);
        }
        long returned = cache.returns.trim(0, true);
        cache.returns.unmapLent();
        List<Page> claimed = deregistered(claim(Page::maySleep));
        returned += sleep(claimed, mode == SleepMode.KEEP ? host : null);
        return CacheTrim.left(cache, returned);
    }

    private List<Page> claim(Predicate<Page> which) {
        List<Page> claimed = new ArrayList<>();
        for (StreamShard shard : cache.shards()) {
            shard.driverLock.lock();
            try {
                claimed.addAll(table.beginChange(shard, which));
            } finally {
                shard.driverLock.unlock();
            }
        }
        claimed.sort(Comparator.comparingLong(page -> page.home.address));
        return claimed;
    }

    private List<Page> deregistered(List<Page> claimed) {
        List<Page> may = new ArrayList<>();
        for (Page page : claimed) {
            if (table.pages.mayUnmap(page.home.address, page.byteSize)) {
                may.add(page);
            } else {
                table.endChange(page, false);
            }
        }
        return may;
    }

    private long sleep(List<Page> claimed, @Nullable PinnedMemory host) {
        if (claimed.isEmpty()) {
            return 0;
        }
        SleepingPages together = new SleepingPages(driver, table, claimed);
        try {
            together.fallAsleep(host);
            return together.byteSize();
        } catch (RuntimeException | Error failure) {
            wakeAfter(together, failure);
            throw failure;
        } finally {
            together.settle();
            if (!together.isEmpty()) {
                asleep.add(together);
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

    /// Brings all memory back, or none; then [decides][#settle] somebody.
    ///
    /// @throws io.cistern.DeviceOutOfMemoryException if there is not enough
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    void wake() {
        if (asleep.isEmpty()) {
            return;
        }
        cache.returns.giveBackIdle();
        claimSleepers();
        try {
            asleep.forEach(SleepingPages::wake);
        } catch (RuntimeException | Error failure) {
            settle(false);
            throw failure;
        }
    }

    /// Claims what sleeps, but for pages that went meanwhile.
    private void claimSleepers() {
        Set<Page> claimed = new HashSet<>(claim(Page::isAsleep));
        asleep.forEach(together -> together.retain(claimed));
    }

    /// Ends a waking.
    ///
    /// @param awake whether it stays awake
    void settle(boolean awake) {
        if (!awake) {
            asleep.forEach(SleepingPages::sleepAgain);
        }
        asleep.forEach(SleepingPages::settle);
        asleep.removeIf(SleepingPages::isEmpty);
    }

    /// Its pages are gone.
    void close() {
        asleep.forEach(SleepingPages::dropKept);
        asleep.clear();
    }
}
