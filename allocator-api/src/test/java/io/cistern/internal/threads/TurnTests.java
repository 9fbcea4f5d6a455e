package io.cistern.internal.threads;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

class TurnTests {
    private static final long PATIENCE = 2_000_000_000L;
    private static final long HOLD_MILLIS = 1_200;

    /// A thread whose turn comes after those of others waits longer than for one of them.
    @Test
    void aTurnIsWaitedForAsLongAsOthersEnd() throws Exception {
        Turn turn = new Turn();
        assertThat(turn.begin(0)).isTrue();
        FutureTask<Boolean> second = new FutureTask<>(() -> {
            boolean mine = turn.begin(PATIENCE);
            Thread.sleep(HOLD_MILLIS);
            turn.end();
            return mine;
        });
        FutureTask<Boolean> third = new FutureTask<>(() -> turn.begin(PATIENCE));
        for (FutureTask<Boolean> each : List.of(second, third)) {
            Thread waiting = Thread.ofPlatform().daemon().start(each);
            while (waiting.getState() != Thread.State.TIMED_WAITING) {
                Thread.onSpinWait();
            }
        }
        Thread.sleep(HOLD_MILLIS);
        turn.end();
        assertThat(second.get()).isTrue();
        assertThat(third.get()).isTrue();
    }

    @Test
    void aTurnIsWaitedForWithABound() throws Exception {
        Turn turn = new Turn();
        assertThat(turn.begin(0)).isTrue();
        assertThat(turn.begin(Long.MAX_VALUE)).as("again by the same thread").isFalse();
        FutureTask<Boolean> impatient = new FutureTask<>(() -> turn.begin(1));
        FutureTask<Boolean> interrupted = new FutureTask<>(() -> {
            Thread.currentThread().interrupt();
            return !turn.begin(Long.MAX_VALUE) && Thread.currentThread().isInterrupted();
        });
        Thread.ofPlatform().start(impatient);
        Thread.ofVirtual().start(interrupted);
        assertThat(impatient.get()).isFalse();
        assertThat(interrupted.get()).isTrue();
        turn.end();
        FutureTask<Boolean> next = new FutureTask<>(() -> turn.begin(Long.MAX_VALUE));
        Thread.ofPlatform().start(next);
        assertThat(next.get()).isTrue();
    }
}
