package io.cistern.caching.internal.compact;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Free ranges of a page, in whichever order they are found.
class SparsePageTests {
    private static final long MIB = 1 << 20;

    @ParameterizedTest
    @CsvSource({"0, 4, 8", "0, 8, 4", "4, 0, 8", "4, 8, 0", "8, 0, 4", "8, 4, 0"})
    void freeRangesAreSortedByAddress(long first, long second, long third) {
        SparsePage page = new SparsePage(new Page(0, 32 * MIB, mock(PageArena.class), 0));
        for (long from : new long[] {first, second, third}) {
            page.addFree(from * MIB, (from + 2) * MIB);
        }
        assertThat(page.froms).containsExactly(0, 4 * MIB, 8 * MIB);
        assertThat(page.tos).containsExactly(2 * MIB, 6 * MIB, 10 * MIB);
        assertThat(page.freeBytes()).isEqualTo(6 * MIB);
        assertThat(page.keptBytes()).isEqualTo(26 * MIB);
    }
}
