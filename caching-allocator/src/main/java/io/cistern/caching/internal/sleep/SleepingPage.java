package io.cistern.caching.internal.sleep;

import io.cistern.caching.internal.page.Page;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A page that sleeps or is about to.
final class SleepingPage {
    final Page page;

    /// The host memory that keeps its bytes, from an offset on; null if they are given up.
    @Nullable
    KeptBytes kept;

    long offset;

    /// Whether its memory was given back at some time.
    boolean hasGone;

    /// Whether its bytes are in device memory.
    boolean isWhole = true;

    SleepingPage(Page page) {
        this.page = page;
    }

    long address() {
        return page.home.address;
    }

    long byteSize() {
        return page.byteSize;
    }

    /// Receives runs of pages that lie side by side, on the device and on the host.
    interface Run {
        void at(SleepingPage begin, long byteSize);
    }

    /// Visits the runs of a list that is sorted by address.
    static void forEachRun(List<SleepingPage> sleepers, Run run) {
        int first = 0;
        for (int i = 1; i <= sleepers.size(); i++) {
            SleepingPage last = sleepers.get(i - 1);
            if (i == sleepers.size() || !sleepers.get(i).follows(last)) {
                SleepingPage begin = sleepers.get(first);
                run.at(begin, last.page.home.end - begin.address());
                first = i;
            }
        }
    }

    private boolean follows(SleepingPage other) {
        return address() == other.page.home.end && kept == other.kept && offset == other.offset + other.byteSize();
    }
}
