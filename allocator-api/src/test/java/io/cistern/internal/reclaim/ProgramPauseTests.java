package io.cistern.internal.reclaim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.internal.threads.RestingThreads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// When live memory may move: which pauses are asked, and what excludes it.
final class ProgramPauseTests {
    private static final int DEVICE = 3;

    private final ProgramPause pause = new ProgramPause();
    private final List<String> heard = new ArrayList<>();

    private final class Heard implements ProgramPause.Pause {
        private final String name;
        private final boolean agrees;

        Heard(String name, boolean agrees) {
            this.name = name;
            this.agrees = agrees;
        }

        @Override
        public @Nullable Runnable begin(int device, Duration atMost) {
            assertThat(device).isEqualTo(DEVICE);
            assertThat(atMost).isBetween(Duration.ofSeconds(1), Duration.ofSeconds(5));
            heard.add(name + " begins");
            return agrees ? () -> heard.add(name + " ends") : null;
        }

        @Override
        public Runnable rest() {
            heard.add(name + " rests");
            return () -> heard.add(name + " goes on");
        }
    }

    @AfterEach
    void close() {
        pause.close();
        assertThat(move()).as("there is no pause any more").isEqualTo(ProgramPause.NOT_ALLOWED);
    }

    private String move() {
        return move(() -> "moved");
    }

    private String move(Supplier<String> work) {
        return pause.during(DEVICE, work, why -> why);
    }

    private String work() {
        return pause.whileNothingMoves(() -> "worked", "not now");
    }

    /// Another thread, which does not wait, as its interrupt forbids.
    private static String onInterrupted(Supplier<String> call) {
        FutureTask<String> task = new FutureTask<>(() -> {
            Thread.currentThread().interrupt();
            String result = call.get();
            assertThat(Thread.interrupted()).as("kept").isTrue();
            return result;
        });
        Thread.ofPlatform().start(task);
        try {
            return task.get();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void nothingMovesWithoutAPause() {
        assertThat(move()).isEqualTo(ProgramPause.NOT_ALLOWED);
    }

    @Test
    void memoryMovesWithinAllPauses() {
        pause.add(new Heard("one", true));
        Runnable end = pause.add(new Heard("other", true));
        assertThat(move(() -> String.valueOf(heard.add("moves")))).isEqualTo("true");
        assertThat(heard)
                .containsSubsequence("one rests", "one begins", "other begins", "moves")
                .containsSubsequence("moves", "other ends", "one ends", "one goes on");
        end.run();
        heard.clear();
        assertThat(move()).isEqualTo("moved");
        assertThat(heard).containsExactly("one rests", "one begins", "one ends", "one goes on");
    }

    @Test
    void aPauseThatIsRefusedEndsTheOthers() {
        pause.add(new Heard("one", true));
        pause.add(new Heard("other", false));
        assertThat(move()).contains("did not pause within 5 s");
        assertThat(heard).containsSubsequence("one begins", "other begins", "one ends");
    }

    @Test
    void aPauseHearsOfWaitsUntilItIsRemoved() {
        Runnable end = pause.add(new Heard("one", true));
        assertThat(RestingThreads.during(() -> heard.add("waits"))).isTrue();
        assertThat(heard).containsExactly("one rests", "waits", "one goes on");
        end.run();
        assertThat(RestingThreads.during(() -> heard.add("waits again"))).isTrue();
        assertThat(heard).hasSize(4);
    }

    @Test
    void oneThreadMovesMemoryAndNobodyWorksMeanwhile() {
        pause.add(new Heard("one", true));
        assertThat(move(() -> move() + ", " + work()))
                .isEqualTo("another thread is moving or spilling memory, not now");
        assertThat(move(() -> onInterrupted(this::work))).isEqualTo("not now");
        assertThat(onInterrupted(this::work)).isEqualTo("worked");
        assertThat(move()).isEqualTo("moved");
    }

    @Test
    void manyThreadsWorkAndNothingMovesMeanwhile() {
        pause.add(new Heard("one", true));
        String meanwhile = pause.whileNothingMoves(
                () -> work() + ", " + onInterrupted(this::work) + ", " + onInterrupted(this::move), "not now");
        assertThat(meanwhile).isEqualTo("worked, worked, another thread is moving or spilling memory");
        assertThat(move()).isEqualTo("moved");
    }
}
