package io.cistern.caching.internal.sleep;

import io.cistern.caching.internal.page.Page;
import java.util.List;

/// A page that sleeps or is about to.
public final class SleepingPage {
    final Page page;

    final long offset;

    /// Whether its memory was given back at some time.
    boolean hasGone;

    /// Whether its bytes are in device memory.
    boolean isWhole = true;

    public SleepingPage(Page page, long offset) {
        this.page = page;
        this.offset = offset;
    }

    long address() {
        return page.home.address;
    }

    long byteSize() {
        return page.byteSize;
    }

    /// Receives runs of pages that lie side by side, on the device and on the host.
    interface Run {
        /// Receives one run.
        ///
        /// @param offset the host offset of its bytes
        void at(long address, long byteSize, long offset);
    }

    /// Visits the runs of a list that is sorted by address.
    static void forEachRun(List<SleepingPage> sleepers, Run run) {
        int first = 0;
        for (int i = 1; i <= sleepers.size(); i++) {
            SleepingPage last = sleepers.get(i - 1);
            if (i == sleepers.size() || !sleepers.get(i).follows(last)) {
                SleepingPage begin = sleepers.get(first);
                run.at(begin.address(), last.page.home.end - begin.address(), begin.offset);
                first = i;
            }
        }
    }

    private boolean follows(SleepingPage other) {
        return address() == other.page.home.end && offset == other.offset + other.byteSize();
    }
}
