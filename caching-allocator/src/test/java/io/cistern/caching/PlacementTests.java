package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Where a request goes if pages are away from a free run that is just large enough: to that run, as if they were
/// there. Else the place of a block would depend on where pages are, which differs between passes of a program.
class PlacementTests {
    private static final long MIB = 1 << 20;

    private final SimulatedCaching caching =
            new SimulatedCaching(1L << 30, "caching:page_size=2MiB,thread_caches=false");
    private final long stream = caching.newStream();
    private long first;
    private long between;
    private long large;

    /// So many pages leave the place of `first`, the first page first, for a block that needs more than there is at
    /// its own place.
    private void movePages(int count) {
        first = caching.allocate(6 * MIB, stream);
        between = caching.allocate(2 * MIB, stream);
        long last = caching.allocate(8 * MIB, stream);
        caching.free(first, stream);
        caching.free(last, stream);
        large = caching.allocate((8 + 2 * count) * MIB, stream);
        assertThat(large).isEqualTo(last);
        assertThat(caching.reservedBytes()).isEqualTo(16 * MIB);
        assertThat(figure("pages.aliased")).isEqualTo(count);
    }

    @AfterEach
    void close() {
        caching.free(between, stream);
        caching.close();
    }

    @Test
    void aRequestComesBackToTheSmallerRunWhosePagesAreIdleElsewhere() {
        movePages(3);
        caching.free(large, stream);
        assertThat(caching.allocate(6 * MIB, stream)).isEqualTo(first);
        assertThat(caching.reservedBytes()).isEqualTo(16 * MIB);
        assertThat(figure("pages.aliased")).as("nothing is mapped anew").isEqualTo(3);
        caching.free(first, stream);
    }

    @Test
    void aRequestPassesByARunWhosePagesAreInUse() {
        movePages(3);
        long other = caching.allocate(6 * MIB, stream);
        assertThat(other).isNotEqualTo(first);
        assertThat(caching.reservedBytes()).isEqualTo(22 * MIB);
        caching.free(other, stream);
        caching.free(large, stream);
    }

    @Test
    void aRequestTakesFreeBytesBehindAPageInUseWithoutAMiss() {
        movePages(1);
        long misses = figure("tier.pages.misses") + figure("tier.pages.hits");
        assertThat(caching.allocate(3 * MIB, stream)).isEqualTo(first + 2 * MIB);
        assertThat(figure("tier.pages.misses") + figure("tier.pages.hits")).isEqualTo(misses);
        caching.caching().checkInvariants();
        caching.free(first + 2 * MIB, stream);
        caching.free(large, stream);
    }

    private long figure(String name) {
        return caching.caching().statistics(SimulatedCaching.DEVICE).getOrDefault(name, -1L);
    }
}
