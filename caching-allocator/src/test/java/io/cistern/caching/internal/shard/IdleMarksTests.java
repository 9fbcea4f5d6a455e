package io.cistern.caching.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageArena;
import org.junit.jupiter.api.Test;

/// Which pages count as idle, and since when.
final class IdleMarksTests extends PagesFixture {
    private static final int UNASKED = 1024;

    private void allocateAndFree(int times) {
        for (int i = 0; i < times; i++) {
            free(shard.allocate(PAGE, 0));
        }
    }

    private void assertIdle(long address, long since) {
        Mapping home = mapping(address);
        assertThat(home.idle).isTrue();
        assertThat(home.freedAt).isEqualTo(since);
    }

    private void assertInUse(long address) {
        assertThat(mapping(address).idle).isFalse();
    }

    @Test
    void marksAreDroppedWhenNoSearchCame() {
        free(grow(shard, 1));
        allocateAndFree(UNASKED - 1);
        assertThat(shard.marks.kept).isTrue();
        allocateAndFree(1);
        assertThat(shard.marks.kept).isFalse();
    }

    @Test
    void eachSearchKeepsThem() {
        long block = grow(shard, 1);
        Mapping home = mapping(block);
        free(block);
        for (int i = 0; i < 3; i++) {
            allocateAndFree(UNASKED - 1);
            shard.lookedAt();
            allocateAndFree(UNASKED - 1);
            assertThat(shard.mayBeIdle(home)).isTrue();
        }
        assertThat(shard.marks.kept).isTrue();
    }

    @Test
    void anAllocationThatAsksForAPageKeepsThem() {
        long block = grow(shard, 1);
        Mapping home = mapping(block);
        free(block);
        for (int i = 0; i < 3; i++) {
            allocateAndFree(UNASKED - 1);
            assertThat(shard.mayBeIdle(home)).isTrue();
        }
        assertThat(shard.marks.kept).isTrue();
    }

    @Test
    void aSearchFindsDroppedMarksAgain() {
        long[] blocks = fill(shard, 5);
        clock.set(10);
        free(blocks[0], blocks[1]);
        free(blocks[3]);
        shard.marks.kept = false;
        assertThat(shard.allocate(PAGE, 0)).isEqualTo(blocks[3]);
        free(blocks[2]);
        clock.set(20);
        shard.lookedAt();
        assertIdle(blocks[0], 20);
        assertIdle(blocks[1], 20);
        assertIdle(blocks[2], 20);
        assertInUse(blocks[3]);
        clock.set(30);
        shard.lookedAt();
        assertIdle(blocks[0], 20);
    }

    @Test
    void aPageIsIdleOnceAllOfItIsFree() {
        long[] blocks = {
            grow(shard, 1), growth.grow(shard, PAGE / 2, false), shard.allocate(PAGE / 2, 0), grow(shard, 1)
        };
        clock.set(10);
        free(blocks[1]);
        assertInUse(blocks[1]);
        clock.set(20);
        free(blocks[2]);
        assertIdle(blocks[1], 20);
        assertInUse(blocks[0]);
        assertInUse(blocks[3]);
        clock.set(30);
        free(blocks[0]);
        assertIdle(blocks[0], 30);
        assertIdle(blocks[1], 20);
    }

    @Test
    void aPageIsInUseOnceAPartOfItIs() {
        long block = grow(shard, 4);
        clock.set(10);
        free(block);
        assertThat(shard.allocate(PAGE + PAGE / 2, 0)).isEqualTo(block);
        assertInUse(block);
        assertInUse(block + PAGE);
        assertIdle(block + 2 * PAGE, 10);
        assertIdle(block + 3 * PAGE, 10);
        clock.set(20);
        long second = shard.allocate(PAGE / 2, 0);
        assertThat(second).isEqualTo(block + PAGE + PAGE / 2);
        assertIdle(block + 2 * PAGE, 10);
        free(second);
        assertInUse(block + PAGE);
        free(block);
        assertIdle(block + PAGE, 20);
        assertIdle(block + 2 * PAGE, 10);
    }

    @Test
    void aPageThatComesBackUnusedKeepsItsTime() {
        long block = grow(shard, 3);
        clock.set(10);
        free(block);
        clock.set(20);
        order.busy.add(shard.key);
        assertThat(shard.giveBack(PAGE, fences)).isZero();
        assertIdle(block, 10);
        assertIdle(block + PAGE, 10);
        assertIdle(block + 2 * PAGE, 10);
    }

    @Test
    void whatIsLeftOfAFreeBlockKeepsItsTime() {
        long[] blocks = fill(shard, 5);
        long taken = lend(blocks[0], other);
        clock.set(10);
        free(blocks[1], blocks[2], blocks[3]);
        clock.set(20);
        assertThat(shard.allocate(PAGE, 0)).as("behind the aliased block").isEqualTo(blocks[1]);
        assertIdle(blocks[2], 10);
        assertIdle(blocks[3], 10);
        assertThat(shard.giveBack(PAGE, fences)).isEqualTo(PAGE);
        assertIdle(blocks[2], 10);
        free(taken);
    }

    /// The parts at its two sides were freed after it was claimed.
    @Test
    void aPageThatComesBackInPartIsAsNewAsItsNewestPart() {
        long block = grow(shard, 2);
        clock.set(10);
        free(block);
        int[] parts = new int[1];
        long half = PAGE / 2;
        assertThat(shard.claimFree(
                        (PageArena) range(block), new long[] {block + half}, new long[] {block + PAGE + half}, parts))
                .isTrue();
        assertInUse(block);
        clock.set(20);
        shard.freeClaimed(parts);
        assertIdle(block, 20);
        assertIdle(block + PAGE, 20);
    }

    @Test
    void aPageOfExactlyOneFreeBlockIsIdle() {
        long[] blocks = fill(shard, 3);
        clock.set(10);
        free(blocks[1]);
        assertIdle(blocks[1], 10);
        assertThat(mapping(blocks[1]).idleBlock).isNotNegative();
        assertThat(shard.allocate(PAGE, 0)).isEqualTo(blocks[1]);
        assertInUse(blocks[1]);
    }
}
