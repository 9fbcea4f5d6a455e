package io.cistern.caching.internal.page;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.internal.growth.PageGrowth;
import io.cistern.caching.internal.heap.AddressRange.Range;
import io.cistern.caching.internal.shard.PagesFixture;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Which page lies at an address, with pages of three slots beside those of one.
final class PageArenaTests extends PagesFixture {
    private final PageGrowth large = growth(table, 3 * PAGE, streams);

    private PageArena arena(long address) {
        return (PageArena) range(address);
    }

    private static List<Mapping> homes(PageArena arena) {
        List<Mapping> homes = new ArrayList<>();
        arena.forEachHome(homes::add);
        return homes;
    }

    @Test
    void eachHomeIsVisitedOnce() {
        long first = grow(shard, 1);
        long second = large.grow(shard, 3 * PAGE, false);
        long third = grow(shard, 1);
        PageArena arena = arena(first);
        assertThat(homes(arena)).containsExactly(mapping(first), mapping(second), mapping(third));
        lend(third, other);
        assertThat(homes(arena)).containsExactly(mapping(first), mapping(second));
        lend(first, other);
        assertThat(homes(arena)).containsExactly(mapping(second));
    }

    @Test
    void anAddressHasTheMappingThatCoversIt() {
        long first = grow(shard, 1);
        long second = large.grow(shard, 3 * PAGE, false);
        PageArena arena = arena(first);
        assertThat(arena.mappingAt(second)).isSameAs(arena.mappingAt(second + 3 * PAGE - 1));
        assertThat(arena.homeAt(second + PAGE)).isSameAs(mapping(second));
        assertThat(arena.mappingAt(second - 1)).isSameAs(mapping(first));
        assertThat(arena.mappingAt(second + 3 * PAGE)).isNull();
        assertThat(arena.mappingAt(arena.end() - 1)).isNull();
        assertThat(arena.mappedEnd()).isBetween(second + 3 * PAGE, arena.end());
        assertThat(arena.mappingAt(arena.mappedEnd())).isNull();
    }

    @Test
    void slotsBeginAtMultiplesOfTheirSize() {
        long block = grow(shard, 2);
        PageArena arena = arena(block);
        assertThat(arena.slotStart(block)).isEqualTo(block);
        assertThat(arena.slotStart(block + 1)).isEqualTo(block + PAGE);
        assertThat(arena.slotStart(block + PAGE)).isEqualTo(block + PAGE);
    }

    /// Pages of 1, 3, 1 and 1 slots.
    @Test
    void theLastPageThatLiesWhollyInARangeCanGoBack() {
        long[] pages = new long[5];
        pages[0] = grow(shard, 1);
        pages[1] = large.grow(shard, 3 * PAGE, false);
        pages[2] = grow(shard, 1);
        pages[3] = grow(shard, 1);
        pages[4] = pages[3] + PAGE;
        PageArena arena = arena(pages[0]);
        assertThat(arena.lastReturnable(pages[0], pages[4])).isEqualTo(new Range(pages[3], pages[4]));
        assertThat(arena.lastReturnable(pages[0], pages[4] + PAGE / 2)).isEqualTo(new Range(pages[3], pages[4]));
        assertThat(arena.lastReturnable(pages[0], pages[4] - 1)).isEqualTo(new Range(pages[2], pages[3]));
        assertThat(arena.lastReturnable(pages[0], pages[2])).isEqualTo(new Range(pages[1], pages[2]));
        assertThat(arena.lastReturnable(pages[1], pages[2])).isEqualTo(new Range(pages[1], pages[2]));
        assertThat(arena.lastReturnable(pages[0], pages[2] - 1)).isEqualTo(new Range(pages[0], pages[1]));
        assertThat(arena.lastReturnable(pages[0] + 1, pages[2] - 1)).isNull();
        assertThat(arena.lastReturnable(pages[1] + 1, pages[2])).isNull();
        table.pin(pages[1], PAGE, Page.Pin.CAPTURED);
        assertThat(arena.lastReturnable(pages[0], pages[2])).isEqualTo(new Range(pages[0], pages[1]));
    }

    @Test
    void aHoleHasNothingToGoBack() {
        long[] blocks = fill(shard, 3);
        PageArena arena = arena(blocks[0]);
        free(blocks[1]);
        assertThat(shard.giveBack(PAGE, fences)).isEqualTo(PAGE);
        assertThat(arena.lastReturnable(blocks[0], blocks[2])).isEqualTo(new Range(blocks[0], blocks[1]));
        assertThat(arena.lastReturnable(blocks[1], blocks[2])).isNull();
    }

    @Test
    void onlyItsOwnPagesPinAnArena() {
        long[] blocks = fill(shard, 2);
        PageArena arena = arena(blocks[0]);
        assertThat(arena.isPinned()).isFalse();
        long taken = lend(blocks[0], other);
        table.pin(taken, PAGE, Page.Pin.CAPTURED);
        assertThat(arena.isPinned()).isFalse();
        assertThat(arena(taken).isPinned()).isTrue();
        table.pin(blocks[1], PAGE, Page.Pin.CAPTURED);
        assertThat(arena.isPinned()).isTrue();
    }

    @Test
    void addressesAreUsedAgainUnlessMappingsAreStable() {
        PageTable stable = new PageTable(table.physical, ranges, true);
        PageArena arena = PageArena.open(shard, PAGE, stable);
        assertThat(arena.reusesAddresses()).isFalse();
        assertThat(arena.keepsAddresses()).isTrue();
        arena.close();
        assertThat(arena(grow(shard, 1)).reusesAddresses()).isTrue();
    }

    @Test
    void openArenasAreCounted() {
        int before = PageArena.openCount();
        PageArena arena = PageArena.open(shard, PAGE, table);
        assertThat(PageArena.openCount()).isEqualTo(before + 1);
        arena.close();
        assertThat(PageArena.openCount()).isEqualTo(before);
    }

    @Test
    void addressesThatTheDriverKeepsFailNoClose() {
        PageArena arena = PageArena.open(shard, PAGE, table);
        table.enter(arena);
        gpu.faults().failOn(DriverCall.MEM_ADDRESS_FREE, 0, 1, CudaResult.UNKNOWN);
        int before = PageArena.openCount();
        arena.close();
        assertThat(PageArena.openCount()).as("they still take addresses").isEqualTo(before);
        assertThat(table.owners).isEmpty();
    }
}
