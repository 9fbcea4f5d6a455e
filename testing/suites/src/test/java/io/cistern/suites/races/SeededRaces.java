package io.cistern.suites.races;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.Graphs;
import io.cistern.hazards.StreamHazard;
import io.cistern.hazards.StreamHazard.Kind;
import io.cistern.suites.WatchedDevice;
import io.cistern.suites.races.RaceProgram.Act;
import io.cistern.suites.races.RaceProgram.Step;
import io.cistern.testkit.Seed;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/// Runs seeded programs of several streams on the driver in the system property `cistern.testkit.driver`, with their
/// use of streams checked. A program that orders all its uses has no hazard. One that lost a wait has one exactly if
/// two of its steps lost every path between them, and each pair that is reported is such a pair. The property
/// `cistern.testkit.races` says how many programs, `cistern.testkit.seed` the first one.
@Tag("races")
@ResourceLock(Resources.SYSTEM_PROPERTIES)
public class SeededRaces {
    private static final int PROGRAMS = Integer.getInteger("cistern.testkit.races", 300);
    private static final long FIRST = Long.getLong(Seed.PROPERTY, 0);
    private static final long BLOCK_BYTES = 64 << 10;

    /// Each step has a size of its own, which tells it in a report.
    private static final int STEP_BYTES = 16;

    /// For JUnit.
    public SeededRaces() {}

    @Test
    void aLostWaitIsFoundAndNothingElse() {
        assertThatLostWaitsAreFound(RaceProgram::plain);
    }

    @Test
    void aLostWaitInsideOfACaptureIsFoundAndNothingElse() {
        assertThatLostWaitsAreFound(RaceProgram::captured);
    }

    /// The allocator itself must make no stream wait for another, or the graph of steps would lack its waits.
    private static void assertThatLostWaitsAreFound(Function<SplittableRandom, RaceProgram> programs) {
        int races = 0;
        try (WatchedDevice device = new WatchedDevice("caching:reuse=never");
                Run run = new Run(device)) {
            for (long seed = FIRST; seed < FIRST + PROGRAMS; seed++) {
                SplittableRandom random = new SplittableRandom(seed);
                RaceProgram ordered = programs.apply(random);
                assertThat(ordered.isOrdered()).isTrue();
                assertThat(run.hazardsOf(ordered)).as("seed %d, ordered", seed).isEmpty();
                RaceProgram fewer = ordered.withoutAWait(random);
                if (fewer != null) {
                    races += judge(seed, fewer, run.hazardsOf(fewer)) ? 1 : 0;
                }
            }
        }
        assertThat(races).as("programs that lost a wait that they need").isGreaterThan(PROGRAMS / 2);
        System.out.printf("%d ordered programs from seed %d, %d with a race%n", PROGRAMS, FIRST, races);
    }

    private static boolean judge(long seed, RaceProgram program, List<StreamHazard> found) {
        boolean isOrdered = program.isOrdered();
        assertThat(found.isEmpty())
                .as("seed %d, without a wait that %s needed", seed, isOrdered ? "nobody" : "a step")
                .isEqualTo(isOrdered);
        assertThat(found)
                .as("seed %d, places", seed)
                .allSatisfy(hazard -> assertThat(isRace(program, hazard)).isTrue());
        return !isOrdered;
    }

    private static boolean isRace(RaceProgram program, StreamHazard hazard) {
        int first = step(program, hazard.first());
        int second = step(program, hazard.second());
        // What serves again too early was freed too early.
        return program.isRace(first, hazard.kind() == Kind.REUSED_TOO_EARLY ? freeOf(program, first) : second);
    }

    private static int step(RaceProgram program, StreamHazard.Place place) {
        int step = (int) (place.byteSize() % BLOCK_BYTES / STEP_BYTES);
        return place.call().equals("free") ? freeOf(program, step) : step;
    }

    private static int freeOf(RaceProgram program, int step) {
        int block = program.steps().get(step).other();
        return IntStream.range(step, program.steps().size())
                .filter(i -> program.steps().get(i).act() == Act.FREE
                        && program.steps().get(i).other() == block)
                .findFirst()
                .orElseThrow();
    }

    private static final class Run implements AutoCloseable {
        private final WatchedDevice device;
        private final long scratch;
        private final long[] streams = new long[RaceProgram.STREAMS];
        private final List<Long> blocks = new ArrayList<>();

        Run(WatchedDevice device) {
            this.device = device;
            this.scratch = device.driver.memory().allocate(0, RaceProgram.STREAMS * BLOCK_BYTES);
        }

        List<StreamHazard> hazardsOf(RaceProgram program) {
            device.run(() -> run(program));
            List<StreamHazard> found = device.hazards.list();
            device.finish();
            for (long block : blocks) {
                if (block != 0) {
                    device.memory.free(block, streams[0]);
                }
            }
            blocks.clear();
            device.reset();
            return found;
        }

        private void run(RaceProgram program) {
            boolean isCaptured = program.capturedFrom() < program.steps().size();
            Arrays.setAll(streams, _ -> isCaptured ? device.stream() : device.heldStream());
            for (int i = 0; i < program.capturedFrom(); i++) {
                run(i, program.steps().get(i));
            }
            if (isCaptured) {
                capture(program);
            }
        }

        private void capture(RaceProgram program) {
            Graphs graphs = device.driver.graphs();
            graphs.beginCapture(0, streams[0], CaptureMode.RELAXED);
            for (int i = program.capturedFrom(); i < program.steps().size(); i++) {
                run(i, program.steps().get(i));
            }
            for (int i = 1; i < streams.length; i++) {
                device.order(streams[i], streams[0]);
            }
            long graph = graphs.endCapture(0, streams[0]);
            long executable = graphs.instantiate(0, graph, false);
            graphs.launch(0, executable, streams[0]);
            device.finish();
            graphs.destroyExecutable(0, executable);
            graphs.destroy(0, graph);
        }

        private void run(int index, Step step) {
            long stream = streams[step.stream()];
            long byteSize = (long) STEP_BYTES * index;
            switch (step.act()) {
                case ALLOCATE -> blocks.add(device.memory.allocate(BLOCK_BYTES + byteSize, 0, stream));
                case USE -> use(blocks.get(step.other()), byteSize, step, stream);
                case FREE -> device.memory.free(blocks.set(step.other(), 0L), stream);
                case WAIT -> device.order(streams[step.other()], stream);
            }
        }

        private void use(long block, long byteSize, Step step, long stream) {
            if (step.isWrite()) {
                device.driver.copies().fillBytes(0, block, (byte) step.stream(), byteSize, stream);
            } else {
                device.driver.copies().onDevice(0, scratch + step.stream() * BLOCK_BYTES, block, byteSize, stream);
            }
        }

        @Override
        public void close() {
            device.driver.memory().free(0, scratch);
        }
    }
}
