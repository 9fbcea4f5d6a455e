package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.DriverCall;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

/// Requests for so many pages at once that a search takes more of them than programs take between two searches.
@Timeout(value = 20, threadMode = ThreadMode.SEPARATE_THREAD)
class ManyPagesTests {
    private static final long MIB = 1L << 20;
    private static final int PAGES = 3000;

    private final SimulatedCaching caching = new SimulatedCaching(16L << 30, "caching:page_size=2MiB");
    private final long a = caching.newStream();
    private final long b = caching.newStream();

    @Test
    void allPagesOfALargeBlockMoveAtOnce() {
        caching.free(caching.allocate(PAGES * 2 * MIB, a), a);
        caching.free(caching.allocate(PAGES * 2 * MIB, b), b);

        assertThat(caching.reservedBytes()).isEqualTo(PAGES * 2 * MIB);
        caching.close();
    }

    @Test
    void allPagesOfALargeBlockComeHomeAtOnce() {
        long first = caching.allocate(PAGES * 2 * MIB, a);
        caching.free(first, a);
        long[] thirds = new long[3];
        Arrays.setAll(thirds, _ -> caching.allocate(PAGES / 3 * 2 * MIB, b));
        Arrays.stream(thirds).forEach(block -> caching.free(block, b));
        long mapped = caching.gpu.calls().of(DriverCall.MEM_MAP);

        long again = caching.allocate(PAGES * 2 * MIB, a);

        assertThat(again).isEqualTo(first);
        assertThat(caching.gpu.calls().of(DriverCall.MEM_MAP)).isEqualTo(mapped);
        caching.free(again, a);
        caching.close();
    }
}
