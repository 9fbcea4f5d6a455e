package io.cistern.caching.internal.compact;

import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;

/// A page with live blocks and with whole slots that are free.
///
/// `page = kept + free`; the free ranges are sorted by address and don't touch.
final class SparsePage {
    final Page page;

    /// The home when the page was found; an idle page may move.
    final Mapping home;

    /// Where the free ranges begin and end.
    long[] froms = {};

    long[] tos = {};
    private long freeBytes;

    SparsePage(Page page) {
        this.page = page;
        this.home = page.home;
    }

    /// Adds a range of whole slots inside a free block.
    void addFree(long from, long to) {
        int at = 0;
        while (at < froms.length && froms[at] < from) {
            at++;
        }
        froms = insert(froms, at, from);
        tos = insert(tos, at, to);
        freeBytes += to - from;
    }

    private static long[] insert(long[] values, int at, long value) {
        long[] more = new long[values.length + 1];
        System.arraycopy(values, 0, more, 0, at);
        more[at] = value;
        System.arraycopy(values, at, more, at + 1, values.length - at);
        return more;
    }

    /// Returns the bytes that would become free.
    long freeBytes() {
        return freeBytes;
    }

    /// Returns the bytes that would have to be copied.
    long keptBytes() {
        return page.byteSize - freeBytes;
    }
}
