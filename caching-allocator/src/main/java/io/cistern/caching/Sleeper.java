package io.cistern.caching;

import java.util.List;

/// A page that sleeps, or is about to.
final class Sleeper {
    final Page page;

    /// Where its bytes are kept.
    final long offset;

    /// Whether its memory was ever given back.
    boolean hasGone;

    /// Whether its bytes are where they belong.
    boolean isWhole = true;

    Sleeper(Page page, long offset) {
        this.page = page;
        this.offset = offset;
    }

    long address() {
        return page.home.address;
    }

    long byteSize() {
        return page.byteSize;
    }

    /// Pages that lie side by side, on the device and on the host.
    interface Run {
        /// Called for each run.
        ///
        /// @param offset where its bytes are kept
        void at(long address, long byteSize, long offset);
    }

    /// Shows the runs in a list that is in the order of addresses.
    static void forEachRun(List<Sleeper> sleepers, Run run) {
        int first = 0;
        for (int i = 1; i <= sleepers.size(); i++) {
            Sleeper last = sleepers.get(i - 1);
            if (i == sleepers.size() || !sleepers.get(i).follows(last)) {
                Sleeper begin = sleepers.get(first);
                run.at(begin.address(), last.page.home.end() - begin.address(), begin.offset);
                first = i;
            }
        }
    }

    private boolean follows(Sleeper other) {
        return address() == other.page.home.end() && offset == other.offset + other.byteSize();
    }
}
