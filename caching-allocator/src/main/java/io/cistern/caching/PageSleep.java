package io.cistern.caching;

import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.shard.StreamShard;
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

/// Sleeping and waking of one device's cache.
///
/// **Sleep.** 1. Wait for the device. 2. Give back what is idle, and mappings of pages at home elsewhere, so that
/// each page left has one address and bytes that somebody may want. 3. [Claim][PageTable#beginChange] these
/// pages, and have them deregistered; who needs one where it is keeps it. 4. [Put them to sleep][SleepingPages].
///
/// **Wake.** 1. Pages whose blocks were all freed meanwhile are let go. 2. The others get memory and their bytes,
/// and are registered again.
///
/// **Threading.** By one thread at a time. While pages are claimed nobody else moves, unmaps or releases them;
/// frees change only the blocks.
final class PageSleep {
    private final CudaDriver driver;
    private final CacheParts parts;
    private final CacheReturns returns;
    private final PageTable table;

    /// What fell asleep together and sleeps.
    private final List<SleepingPages> asleep = new ArrayList<>();

    PageSleep(CudaDriver driver, CacheParts parts, CacheReturns returns, PageTable table) {
        this.driver = driver;
        this.parts = parts;
        this.returns = returns;
        this.table = table;
    }

    boolean isEmpty() {
        return asleep.isEmpty();
    }

    /// @throws io.cistern.cuda.CudaException if the driver refuses; then all is awake that can be, and [#isEmpty]
    /// if that is all
    TrimResult sleep(SleepMode mode, HostMemory host) {
        if (mode == SleepMode.DROP) {
            asleep.forEach(SleepingPages::dropKept);
        }
        if (parts.reserved().bytes() == 0) {
            return CacheTrim.left(parts, 0); // without a wait, which a capture of somebody else's would forbid
        }
        driver.devices().synchronize(parts.device());
        if (!asleep.isEmpty()) {
            takeBack();
        }
        long returned = returns.trim(0, true);
        unmapAliased();
        returned += sleep(mode == SleepMode.KEEP ? host : null);
        return CacheTrim.left(parts, returned);
    }

    /// But for mappings that somebody needs where they are; no work uses any.
    private void unmapAliased() {
        for (StreamShard shard : parts.allShards()) {
            shard.driverLock.lock();
            try {
                table.lent.unmap(shard.memory);
            } finally {
                shard.driverLock.unlock();
            }
        }
    }

    /// What an earlier waking had to leave goes.
    private void takeBack() {
        try {
            claimSleepers();
        } finally {
            settle(false);
        }
    }

    /// @param claimed gets the pages, by address, also those claimed before a failure
    private void claim(Predicate<Page> which, List<@Nullable Page> claimed) {
        for (StreamShard shard : parts.allShards()) {
            shard.driverLock.lock();
            try {
                table.beginChange(shard.memory, which, claimed);
            } finally {
                shard.driverLock.unlock();
            }
        }
        claimed.sort(Comparator.comparingLong(page -> Objects.requireNonNull(page).home.address));
    }

    /// What is claimed ends whatever happens: it is awake or asleep then.
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

    /// Moves what may sleep from the claimed pages to those that sleep together; the others stay.
    private void deregister(List<@Nullable Page> claimed, SleepingPages together) {
        together.reserve(claimed.size());
        for (int i = 0; i < claimed.size(); i++) {
            Page page = Objects.requireNonNull(claimed.get(i));
            SleepingPage sleeper = new SleepingPage(page, together.nextOffset());
            if (table.pages.mayUnmap(page.home.address, page.byteSize)) {
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

    /// Brings all memory back, or none; then [decides][#settle] somebody.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    void wake() {
        if (asleep.isEmpty()) {
            return;
        }
        returns.giveBackIdle();
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

    /// Claims what sleeps, but for pages that went meanwhile.
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

    /// Ends a waking.
    ///
    /// @param awake whether it stays awake
    void settle(boolean awake) {
        try {
            for (int i = 0; !awake && i < asleep.size(); i++) {
                asleep.get(i).sleepAgain();
            }
        } finally {
            settleFrom(0);
        }
    }

    /// All of them, whatever one of them throws.
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

    /// Its pages are gone.
    void close() {
        asleep.forEach(SleepingPages::dropKept);
        asleep.clear();
    }
}
