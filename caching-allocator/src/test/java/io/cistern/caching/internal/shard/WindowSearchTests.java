package io.cistern.caching.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.heap.SmallerRuns;
import io.cistern.caching.internal.page.Page;
import io.cistern.internal.threads.HeldLock;
import java.util.StringJoiner;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// Which window serves a request, and when an allocation leaves a request to it. A window is told by its blocks: the
/// number of the page where each begins, and whether it is free, aliased or a hole.
final class WindowSearchTests extends PagesFixture {
    private long start;

    /// Blocks of one page each, from page 0 on.
    private long[] fill(int pages) {
        long[] blocks = fill(shard, pages);
        start = blocks[0];
        return blocks;
    }

    private long at(int page) {
        return start + page * PAGE;
    }

    private String window(int pages) {
        return window(pages, page -> page.home.idle);
    }

    private String window(int pages, @Nullable Predicate<Page> usable) {
        try (HeldLock _ = table.hold()) {
            MappingWindow window = shard.claimWindow(pages * PAGE, usable);
            if (window == null) {
                return "none";
            }
            StringJoiner told = new StringJoiner(" ");
            for (int i = 0; i < window.count; i++) {
                told.add(state(window.states[i]) + (window.bounds[i] - start) / PAGE);
            }
            shard.abandon(window);
            return told.toString();
        }
    }

    private static String state(byte state) {
        return switch (state) {
            case Blocks.FREE -> "free";
            case Blocks.ALIASED -> "aliased";
            case Blocks.HOLE -> "hole";
            default -> throw new AssertionError("state " + state);
        };
    }

    private void assertFinds(int pages, int page) {
        long address = shard.allocate(pages * PAGE, 0);
        assertThat(address).isEqualTo(at(page));
        free(address);
    }

    private void assertLeft(int pages, boolean toOwnPages) {
        assertThat(shard.allocate(pages * PAGE, 0)).isEqualTo(toOwnPages ? SmallerRuns.OWN_PAGES : 0);
    }

    // Pages in use elsewhere.

    @Test
    void aPageInUseElsewhereEndsAStretch() {
        long[] blocks = fill(5);
        long taken = lend(blocks[1], other);
        free(blocks[0], blocks[2], blocks[3]);
        assertThat(window(1)).isEqualTo("free0");
        assertThat(window(2)).isEqualTo("free2");
        assertThat(window(3)).isEqualTo("hole5");
        free(taken);
        assertThat(window(2)).isEqualTo("free0 aliased1");
        assertThat(window(4)).isEqualTo("free0 aliased1 free2");
        assertThat(window(2, null)).isEqualTo("free2");
    }

    @Test
    void theSearchGoesOnBehindAPageInUse() {
        long[] blocks = fill(10);
        lend(blocks[2], other);
        lend(blocks[5], other);
        free(blocks[0], blocks[1], blocks[3], blocks[4], blocks[6], blocks[7], blocks[8]);
        assertThat(window(2)).isEqualTo("free0");
        assertThat(window(3)).isEqualTo("free6");
        assertThat(window(4)).isEqualTo("hole10");
    }

    @Test
    void aPageInUseAtTheEndOfAFreeRunLeavesTheRestToOthers() {
        long[] blocks = fill(4);
        long taken = lend(blocks[2], other);
        free(blocks[0], blocks[1]);
        assertThat(window(2)).isEqualTo("free0");
        assertThat(window(3)).isEqualTo("hole4");
        free(taken);
        assertThat(window(3)).isEqualTo("free0 aliased2");
    }

    @Test
    void theSmallestFreeRunServes() {
        long[] blocks = fill(12);
        free(blocks[0], blocks[1], blocks[2], blocks[3]);
        free(blocks[5], blocks[6]);
        free(blocks[8], blocks[9], blocks[10]);
        assertThat(window(1)).isEqualTo("free5");
        assertThat(window(2)).isEqualTo("free5");
        assertThat(window(3)).isEqualTo("free8");
        assertThat(window(4)).isEqualTo("free0");
        assertThat(window(5)).isEqualTo("hole12");
        assertThat(window((int) (CAPACITY / PAGE) * 512)).isEqualTo("none");
    }

    // Pages that would count twice.

    /// Page 0 lies under block 8, after a page of the other shard.
    @Test
    void aPageWhoseHomeComesLaterCountsThereOnly() {
        long[] blocks = fill(8);
        long taken = lend(blocks[7], other);
        free(blocks[0]);
        long ahead = move(shard, 2);
        assertThat(ahead).isEqualTo(at(8));
        free(taken, ahead);
        free(IntStream.range(1, 7).mapToLong(i -> blocks[i]).toArray());
        assertThat(window(8)).isEqualTo("aliased0 free1 aliased7");
        assertThat(window(9)).isEqualTo("free1 aliased7 free8");
        assertThat(window(10)).isEqualTo("free1 aliased7 free8 hole10");
    }

    /// Page 5 lies under block 0.
    @Test
    void aPageWhoseHomeComesEarlierCountsAtTheAliasedBlockOnly() {
        long[] blocks = fill(8);
        free(blocks[0], blocks[1]);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(2 * PAGE);
        free(blocks[5]);
        long before = move(shard, 2);
        assertThat(before).isEqualTo(at(0));
        free(before, blocks[2], blocks[3], blocks[4], blocks[6], blocks[7]);
        assertThat(window(5)).isEqualTo("free0");
        assertThat(window(6)).isEqualTo("aliased5 free6 hole8");
        assertThat(window(3)).isEqualTo("free0");
    }

    /// Page 0 lay under block 8 too, and is in the other shard now.
    @Test
    void aPageWithTwoAliasedBlocksCountsAtTheLaterOne() {
        long[] blocks = fill(8);
        free(blocks[0]);
        free(move(shard, 2));
        long taken = move(other, 1);
        assertThat(mapping(at(0)).page.home).isSameAs(mapping(taken));
        free(taken);
        free(IntStream.range(1, 8).mapToLong(i -> blocks[i]).toArray());
        assertThat(window(8)).isEqualTo("aliased0 free1");
        assertThat(window(9)).isEqualTo("free1 aliased8 free9");
        assertThat(window(10)).isEqualTo("free1 aliased8 free9 hole10");
    }

    /// The pages of all even blocks lie side by side after block 79.
    @Test
    void manyPagesCountOnce() {
        long[] blocks = fill(80);
        IntStream.range(0, 40).forEach(i -> free(blocks[2 * i]));
        long joined = move(shard, 40);
        assertThat(joined).isEqualTo(at(80));
        assertThat(counters.reservedBytes()).isEqualTo(80 * PAGE);
        free(joined);
        IntStream.range(0, 40).forEach(i -> free(blocks[2 * i + 1]));
        assertThat(window(3)).isEqualTo("aliased0 free1 aliased2");
        assertThat(window(79)).startsWith("aliased0 free1").endsWith("aliased78");
        assertThat(window(41)).startsWith("aliased0 free1").endsWith("free39 aliased40");
        assertThat(window(100)).isEqualTo("free79 hole120");
    }

    // Allocations.

    @Test
    void aPageThatCanComeBackLeavesTheRequestToItsWindow() {
        long[] blocks = fill(8);
        long taken = lend(blocks[1], other);
        free(blocks[0], blocks[3], blocks[4], blocks[5]);
        assertFinds(2, 3);
        free(taken);
        assertLeft(2, false);
        assertFinds(3, 3);
        assertThat(grow(shard, 2)).isEqualTo(at(0));
        assertThat(mapping(at(1)).isHome()).isTrue();
    }

    @Test
    void aPageOfTheSameStreamIsToldApart() {
        long[] blocks = fill(12);
        free(blocks[0]);
        long joined = move(shard, 2);
        assertThat(joined).isEqualTo(at(12));
        free(joined, blocks[1]);
        free(blocks[3], blocks[4], blocks[5]);
        assertLeft(2, true);
        free(lend(blocks[7], other), blocks[6]);
        assertLeft(5, false);
    }

    @Test
    void aMissOfBothStreamsPagesIsToldAsTheOthers() {
        long[] blocks = fill(8);
        free(blocks[0]);
        long joined = move(shard, 2);
        free(lend(blocks[1], other));
        free(joined, blocks[3], blocks[4], blocks[5]);
        assertLeft(2, false);
        assertLeft(1, true);
    }

    @Test
    void aFreeBlockBehindAPageInUseServesBeforeALargerRun() {
        long[] blocks = fill(9);
        long taken = lend(blocks[0], other);
        free(blocks[1], blocks[2]);
        free(blocks[4], blocks[5], blocks[6], blocks[7]);
        assertFinds(2, 1);
        assertFinds(1, 1);
        assertFinds(3, 4);
        free(taken);
        assertLeft(3, false);
        assertLeft(1, false);
    }

    /// Both free runs have two pages.
    @Test
    void ofEqualRunsTheOneAtLowerAddressesServes() {
        long[] blocks = fill(6);
        long taken = lend(blocks[1], other);
        free(blocks[3], blocks[4]);
        free(taken, blocks[0]);
        assertLeft(2, false);
        assertThat(grow(shard, 2)).isEqualTo(at(0));
        assertThat(grow(shard, 2)).isEqualTo(at(3));
    }

    @Test
    void aWindowThatLacksPagesIsNoReasonToMiss() {
        long[] blocks = fill(8);
        free(lend(blocks[7], other));
        free(blocks[0], blocks[1]);
        assertThat(shard.giveBack(PAGE, fences)).isEqualTo(PAGE);
        free(blocks[3], blocks[4], blocks[5]);
        assertFinds(2, 3);
    }

    /// The stretch begins after a hole and after page 2's home, block 1.
    @Test
    void aHoleBeforeTheWindowLacksNoPage() {
        long[] blocks = fill(14);
        free(blocks[0], blocks[1]);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(2 * PAGE);
        long first = grow(shard, 1);
        free(blocks[2]);
        assertThat(move(shard, 1)).isEqualTo(at(1));
        assertThat(mapping(at(2)).page.home).isSameAs(mapping(at(1)));
        free(first);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        free(at(1), blocks[3], blocks[4]);
        free(IntStream.range(6, 12).mapToLong(i -> blocks[i]).toArray());
        assertThat(window(3)).isEqualTo("aliased2 free3");
        assertLeft(3, true);
    }

    @Test
    void aPinnedPageDoesNotComeBack() {
        long[] blocks = fill(6);
        long taken = lend(blocks[1], other);
        free(blocks[0], blocks[3], blocks[4], taken);
        table.pin(taken, PAGE, Page.Pin.CAPTURED);
        assertFinds(2, 3);
    }
}
