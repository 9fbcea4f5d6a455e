package io.cistern.cli.rest;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.simulated.SimulatedGpu;
import io.cistern.suites.RunnableSpecs;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.junit.jupiter.params.provider.MethodSource;

/// Live memory moves only while the program has said that it rests: threads that never allocate find it at its
/// address, over every allocator.
final class LiveMemoryTests {
    private static final int SEEDS = 3;
    private static final long SEED = 20261128;

    static List<String> specs() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build()) {
            return RunnableSpecs.on(gpu);
        }
    }

    @ParameterizedTest
    @MethodSource("specs")
    void withoutAPauseNothingMoves(String spec) throws InterruptedException {
        LookingProgram.Outcome outcome = new LookingProgram(spec, Resting.NEVER, 1, SEED).run();
        assertThat(outcome.wrong()).isEmpty();
        assertThat(outcome.looks()).isPositive();
        assertThat(outcome.moved()).isZero();
    }

    @ParameterizedTest
    @MethodSource("specs")
    void whileTheProgramRestsNobodyMeetsMemoryThatMoves(String spec) throws InterruptedException {
        for (Resting resting : Resting.values()) {
            LookingProgram.Outcome outcome = new LookingProgram(spec, resting, 2, SEED).run();
            assertThat(outcome.wrong()).as(spec + " " + resting).isEmpty();
            assertThat(outcome.looks()).isPositive();
        }
    }

    @ParameterizedTest
    @EnumSource(mode = Mode.EXCLUDE, names = "NEVER")
    void aProgramThatRestsIsServed(Resting resting) throws InterruptedException {
        for (int i = 0; i < SEEDS; i++) {
            LookingProgram.Outcome outcome = new LookingProgram("caching", resting, 1, SEED + i).run();
            assertThat(outcome.wrong()).isEmpty();
            assertThat(outcome.refusals()).isEmpty();
            assertThat(outcome.moved()).isPositive();
        }
    }

    @Test
    void aRefusalSaysWhatCompactionWouldGive() throws InterruptedException {
        LookingProgram.Outcome outcome = new LookingProgram("caching", Resting.NEVER, 1, SEED).run();
        assertThat(outcome.refusals())
                .isNotEmpty()
                .allSatisfy(text -> assertThat(text).contains(" would be freed", "Listeners.onCompaction"));
    }
}
