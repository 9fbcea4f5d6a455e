package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Random programs whose live memory moves: no byte is wrong, and nothing is lost.
final class CompactionScenarioTests {
    private static final long SEED = 20261126;
    private static final int SOME = 40;
    private static final int MANY = Integer.getInteger("cistern.compaction.scenarios", 100_000);

    @Test
    void noByteIsWrongInSomePrograms() throws InterruptedException {
        assertThat(run(SOME)).isPositive();
    }

    @Test
    @Tag("long")
    void noByteIsWrongInManyPrograms() throws InterruptedException {
        assertThat(run(MANY)).isPositive();
    }

    private static long run(int count) throws InterruptedException {
        long moved = 0;
        for (int i = 0; i < count; i++) {
            moved += new CompactionScenario(SEED + i).run();
        }
        return moved;
    }
}
