package io.cistern.caching.internal.sleep;

import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.spi.HostMemory;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Puts pages of a device to sleep and wakes them. The physical memory of a sleeping page is given back; its
/// addresses stay reserved; its bytes are kept on the host or given up.
///
/// ```
/// sleep   copy  batch 0 │ batch 1 │ batch 2 │
///         host          │ unmap 0 │ unmap 1 │ unmap 2       unmap, release: page by page
///
/// wake    host  map 0 │ map 1 │ map 2 │                     create, map: page by page; setAccess: run by run
///         copy        │ batch 0 │ batch 1 │ batch 2
/// ```
///
/// Mapping or unmapping a page takes the host about as long as the link takes for the smallest copy, whatever
/// the page's size, so mapping overlaps with copying. A failure undoes all steps before it. Each page
/// records how far it got ([Page#hasMemory], [Page#isMapped], [SleepingPage#isWhole]), so the next attempt
/// finds memory that the driver would not take back.
///
/// **Threading.** One thread at a time; the pages are [claimed][PageTable#beginChange].
public final class SleepingPages {
    private static final System.Logger LOG = System.getLogger(SleepingPages.class.getName());

    /// The bytes under way at a time, unless one page is larger: enough to overlap with mapping, little
    /// compared to the whole.
    private static final long BATCH_BYTES = 64L << 20;

    private final CudaDriver driver;
    private final PageTable table;
    private final PhysicalPages pages;

    /// Pages that fell asleep together are adjacent, by address.
    private final ArrayList<SleepingPage> sleepers = new ArrayList<>(0);

    /// One for each sleep that still has pages.
    private final ArrayList<KeptBytes> allKept = new ArrayList<>(0);

    public SleepingPages(CudaDriver driver, PageTable table) {
        this.driver = driver;
        this.table = table;
        this.pages = table.physical;
    }

    public int count() {
        return sleepers.size();
    }

    /// Makes room for `more` pages, so that [#tryAdd] needs no Java heap once the source has agreed.
    public void reserve(int more) {
        sleepers.ensureCapacity(sleepers.size() + more);
    }

    /// Adds a claimed page that is to sleep. Pages are added by address.
    ///
    /// @return false if its source needs it
    public boolean tryAdd(Page page) {
        SleepingPage sleeper = new SleepingPage(page);
        return pages.mayUnmap(page.home) && sleepers.add(sleeper);
    }

    public void dropKept() {
        for (int i = 0; i < sleepers.size(); i++) {
            sleepers.get(i).kept = null;
        }
        closeUnused();
    }

    private void closeUnused() {
        for (int i = allKept.size() - 1; i >= 0; i--) {
            if (!isUsed(allKept.get(i))) {
                allKept.get(i).close();
                allKept.remove(i);
            }
        }
    }

    private boolean isUsed(KeptBytes kept) {
        boolean used = false;
        for (int i = 0; i < sleepers.size() && !used; i++) {
            used = sleepers.get(i).kept == kept;
        }
        return used;
    }

    /// Forgets pages that have since been freed.
    ///
    /// @param claimed the pages that were not freed
    public void retain(Set<@Nullable Page> claimed) {
        sleepers.removeIf(sleeper -> !claimed.contains(sleeper.page));
    }

    /// Gives back the memory of the pages from index `first` on. After a failure some are whole and others
    /// are not: see [#wake] and [#settle].
    ///
    /// @param host where bytes are kept; null to give them up
    /// @return the bytes of these pages
    /// @throws io.cistern.cuda.CudaException if the driver refuses, or can't pin so much
    public long fallAsleep(int first, @Nullable HostMemory host) {
        List<SleepingPage> falling = List.copyOf(sleepers.subList(first, sleepers.size()));
        long byteSize = falling.stream().mapToLong(SleepingPage::byteSize).sum();
        if (host != null && byteSize > 0) {
            keep(falling, host, byteSize);
        }
        List<List<SleepingPage>> batches = batches(falling);
        try (SleepCopies copies = new SleepCopies(driver, pages.counters.device, falling)) {
            for (int i = 0; i <= batches.size(); i++) {
                if (i < batches.size()) {
                    copies.save(i, batches.get(i));
                }
                if (i > 0) {
                    copies.awaitSaved(i - 1);
                    batches.get(i - 1).forEach(this::release);
                }
            }
        }
        return byteSize;
    }

    private void keep(List<SleepingPage> falling, HostMemory host, long byteSize) {
        allKept.ensureCapacity(allKept.size() + 1);
        KeptBytes kept = new KeptBytes(host, byteSize);
        allKept.add(kept);
        long offset = 0;
        for (SleepingPage sleeper : falling) {
            sleeper.kept = kept;
            sleeper.offset = offset;
            offset += sleeper.byteSize();
        }
    }

    private void release(SleepingPage sleeper) {
        Page page = sleeper.page;
        pages.unmap(sleeper.address(), page.byteSize);
        page.isMapped = false;
        sleeper.isWhole = false;
        sleeper.hasGone = true;
        page.home.owner.sleeps(page.byteSize, true);
        pages.counters.announceReleased(sleeper.address(), page.byteSize);
        pages.release(page);
        page.hasMemory = false;
    }

    /// Gives memory to the pages from index `first` on that are not whole, or to none.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void wake(int first) {
        List<SleepingPage> asleep = sleepers.stream()
                .skip(first)
                .filter(sleeper -> !sleeper.isWhole)
                .toList();
        if (asleep.isEmpty()) {
            return;
        }
        SleepCopies copies = new SleepCopies(driver, pages.counters.device, asleep);
        try {
            for (List<SleepingPage> batch : batches(asleep)) {
                map(batch);
                copies.restore(batch);
            }
            copies.await();
        } catch (RuntimeException | Error failure) {
            if (copies.tryAwait()) {
                asleep.forEach(sleeper -> takeBack(sleeper, failure));
            }
            throw failure;
        } finally {
            copies.close();
        }
        asleep.forEach(sleeper -> sleeper.isWhole = true);
    }

    private void map(List<SleepingPage> batch) {
        for (SleepingPage sleeper : batch) {
            Page page = sleeper.page;
            if (!page.hasMemory) {
                page.handle = pages.create(page.byteSize);
                page.hasMemory = true;
            }
            if (!page.isMapped) {
                pages.map(sleeper.address(), page);
                page.isMapped = true;
            }
        }
        SleepingPage.forEachRun(batch, (begin, byteSize) -> pages.setAccess(begin.address(), byteSize));
    }

    /// Undoes a wake that was not [finished][#settle], or the part of it that an earlier call could not undo.
    public void sleepAgain() {
        Throwable refusals = new IllegalStateException("memory that the driver did not take back stays awake");
        for (int i = 0; i < sleepers.size(); i++) {
            if (sleepers.get(i).hasGone) {
                takeBack(sleepers.get(i), refusals);
            }
        }
        Throwable[] all = refusals.getSuppressed();
        if (all.length > 0) {
            LOG.log(
                    Level.WARNING,
                    all.length + " pages of a sleeping pool stay reserved for now: " + all[0].getMessage());
        }
    }

    private void takeBack(SleepingPage sleeper, Throwable failure) {
        Page page = sleeper.page;
        try {
            if (page.isMapped) {
                pages.unmap(sleeper.address(), page.byteSize);
                page.isMapped = false;
                sleeper.isWhole = false;
            }
        } catch (CudaException refusal) {
            failure.addSuppressed(refusal);
            return;
        }
        if (page.hasMemory) {
            pages.release(page);
            page.hasMemory = false;
        }
    }

    /// Ends the change of the pages from index `first` on: whole pages are awake, the others asleep. If the
    /// Java heap is too full to announce a page to its source again, that page sleeps, too; it is whole,
    /// and the next wake announces it.
    ///
    /// @throws OutOfMemoryError if there is such a page; the change has ended for the others too
    public void settle(int first) {
        OutOfMemoryError full = null;
        int asleep = first;
        for (int i = first; i < sleepers.size(); i++) {
            SleepingPage sleeper = sleepers.get(i);
            boolean awake = false;
            try {
                awake = sleeper.isWhole && announced(sleeper);
            } catch (OutOfMemoryError failure) {
                full = failure;
            }
            table.endChange(sleeper.page, !awake);
            if (!awake) {
                sleepers.set(asleep++, sleeper);
            }
        }
        while (sleepers.size() > asleep) {
            sleepers.removeLast();
        }
        closeUnused();
        if (full != null) {
            throw full;
        }
    }

    /// Announces the page to the source and counts it; the call that may fail comes first.
    private boolean announced(SleepingPage sleeper) {
        Page page = sleeper.page;
        pages.announceMapped(page.home);
        if (sleeper.hasGone) {
            page.home.owner.sleeps(page.byteSize, false);
            pages.counters.announceAcquired(sleeper.address(), page.byteSize);
        }
        return true;
    }

    private static List<List<SleepingPage>> batches(List<SleepingPage> all) {
        List<List<SleepingPage>> batches = new ArrayList<>();
        long room = 0;
        for (SleepingPage sleeper : all) {
            if (room < sleeper.byteSize()) {
                batches.add(new ArrayList<>());
                room = BATCH_BYTES;
            }
            batches.getLast().add(sleeper);
            room -= sleeper.byteSize();
        }
        return batches;
    }
}
