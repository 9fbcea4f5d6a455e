package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.page.Page;
import java.util.Arrays;

/// Where one search met each page last. Guarded by the shard's lock.
final class SeenPages {
    static final long NOWHERE = -1;

    /// By the page's number: the search that met it, and the address.
    private long[] searches = new long[64];

    private long[] addresses = new long[64];
    private long search;

    /// Forgets all pages.
    void clear() {
        search++;
    }

    /// Records that the search meets a page.
    ///
    /// @return the address where it met the page before, or [#NOWHERE]
    long meet(Page page, long address) {
        int number = Math.max(0, page.number()); // a page that is being removed has none: the guess is wrong then
        if (number >= searches.length) {
            addresses = Arrays.copyOf(addresses, 2 * number);
            searches = Arrays.copyOf(searches, 2 * number);
        }
        long before = searches[number] == search ? addresses[number] : NOWHERE;
        searches[number] = search;
        addresses[number] = address;
        return before;
    }
}
