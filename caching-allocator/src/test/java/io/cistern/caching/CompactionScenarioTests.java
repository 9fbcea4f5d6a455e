package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Random programs whose live memory moves: no byte is wrong, and nothing is lost.
final class CompactionScenarioTests {
    private static final long SEED = 20261126;
    private static final int SOME = 40;
    private static final int MANY = Integer.getInteger("cistern.compaction.scenarios", 100_000);

    private long moved;
    private long onHost;

    @Test
    void noByteIsWrongInSomePrograms() throws InterruptedException {
        run(SOME);
    }

    @Test
    @Tag("long")
    void noByteIsWrongInManyPrograms() throws InterruptedException {
        run(MANY);
    }

    private void run(int count) throws InterruptedException {
        for (int i = 0; i < count; i++) {
            CompactionScenario scenario = new CompactionScenario(SEED + i);
            moved += scenario.run();
            onHost += scenario.onHost();
        }
        System.getLogger("scenarios")
                .log(System.Logger.Level.INFO, moved + " pages replaced, " + onHost + " by way of the host");
        assertThat(moved).isPositive();
        assertThat(onHost).isPositive();
    }
}
