package io.cistern.caching.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// What a free learns of the streams that used its block.
class RecordedUsesTests {
    private static final long BLOCK = 4096;
    private static final long ENDING = 7;
    private static final long OTHER = 9;
    private static final long END = -99;

    private final RecordedUses uses = new RecordedUses();

    @Test
    void aStreamThatEndsIsKnownByItsEnd() {
        uses.add(BLOCK, ENDING);
        uses.add(BLOCK, OTHER);

        uses.replace(ENDING, () -> END);

        assertThat(uses.take(BLOCK)).containsExactly(END, OTHER);
    }

    @Test
    void aBlockThatComesWhileAStreamEndsDoesNotWaitForIt() {
        uses.add(BLOCK, ENDING);

        uses.replace(ENDING, () -> {
            uses.take(BLOCK); // another thread frees it, and allocates there again
            uses.add(BLOCK, OTHER);
            return END;
        });

        assertThat(uses.take(BLOCK)).containsExactly(OTHER);
    }

    @Test
    void anEndIsAskedForOnceHoweverManyBlocksTheStreamUsed() {
        uses.add(BLOCK, ENDING);
        uses.add(2 * BLOCK, ENDING);
        int[] asked = {0};

        uses.replace(ENDING, () -> {
            asked[0]++;
            return END;
        });

        assertThat(asked[0]).isOne();
        assertThat(uses.take(BLOCK)).containsExactly(END);
        assertThat(uses.take(2 * BLOCK)).containsExactly(END);
        assertThat(uses.take(BLOCK)).isEmpty();
    }

    @Test
    void aStreamIsKeptOnceAndTakenOutAlone() {
        for (long key : new long[] {7, 5, 9, 5, 7, 9}) {
            uses.add(0x100, key);
        }
        long[] all = uses.of(0x100);
        assertThat(all).containsExactly(5, 7, 9);
        assertThat(RecordedUses.without(all, 5)).containsExactly(7, 9);
        assertThat(RecordedUses.without(all, 7)).containsExactly(5, 9);
        assertThat(RecordedUses.without(all, 9)).containsExactly(5, 7);
        assertThat(RecordedUses.without(all, 8)).isSameAs(all);
    }

    @Test
    void aBlockThatWasTakenHasNoUses() {
        uses.add(0x100, 5);
        uses.add(0x200, 5);
        assertThat(uses.mayContain(0x100)).isTrue();
        assertThat(uses.take(0x100)).containsExactly(5);
        assertThat(uses.mayContain(0x100)).isFalse();
        assertThat(uses.mayContain(0x200)).isTrue();
    }
}
