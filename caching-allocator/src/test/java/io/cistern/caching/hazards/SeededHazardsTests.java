package io.cistern.caching.hazards;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.Graphs;
import io.cistern.hazards.StreamHazard;
import io.cistern.simulated.SimulatedGpu;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/// Seeded programs of several streams, judged by another way than vector clocks: by paths in the graph of their steps.
/// A program that orders all its uses has no hazard; one that lost a wait has one exactly if two of its uses lost every
/// path between them. The property `cistern.hazards.programs` says how many programs.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
class SeededHazardsTests {
    private static final int PROGRAMS = Integer.getInteger("cistern.hazards.programs", 300);
    private static final int STREAMS = 4;
    private static final int STEPS = 40;
    private static final long BYTES = 64 << 10;

    private enum Act {
        ALLOCATE,
        USE,
        FREE,
        WAIT
    }

    /// @param other the block; of a wait, the stream that is waited for
    private record Step(Act act, int stream, int other, boolean isWrite) {}

    /// How a captured program begins: stream 0 allocates all blocks, and forks the other streams.
    private static final List<Step> FORK = fork();

    private static List<Step> fork() {
        List<Step> steps = new ArrayList<>();
        for (int block = 0; block < STREAMS; block++) {
            steps.add(new Step(Act.ALLOCATE, 0, block, true));
        }
        for (int stream = 1; stream < STREAMS; stream++) {
            steps.add(new Step(Act.WAIT, stream, 0, false));
        }
        return List.copyOf(steps);
    }

    /// A program of uses alone, in which each comes after those that it conflicts with.
    private static List<Step> captured(SplittableRandom random) {
        List<Step> steps = new ArrayList<>(FORK);
        while (steps.size() < STEPS) {
            Step next = new Step(Act.USE, random.nextInt(STREAMS), random.nextInt(STREAMS), random.nextInt(10) > 5);
            addOrdered(steps, next);
        }
        return steps;
    }

    private static void addOrdered(List<Step> steps, Step next) {
        for (int before : unordered(steps, next)) {
            steps.add(new Step(Act.WAIT, next.stream, steps.get(before).stream, false));
        }
        steps.add(next);
    }

    /// A program in which each use comes after those that it conflicts with.
    private static List<Step> program(SplittableRandom random) {
        List<Step> steps = new ArrayList<>();
        List<Integer> live = new ArrayList<>();
        int blocks = 0;
        while (steps.size() < STEPS) {
            int stream = random.nextInt(STREAMS);
            int dice = random.nextInt(10);
            if (live.isEmpty() || dice < 2) {
                steps.add(new Step(Act.ALLOCATE, stream, blocks, true));
                live.add(blocks++);
                continue;
            }
            int block = live.get(random.nextInt(live.size()));
            Step next = new Step(dice == 9 ? Act.FREE : Act.USE, stream, block, dice > 5);
            addOrdered(steps, next);
            if (next.act == Act.FREE) {
                live.remove((Integer) block);
            }
        }
        return steps;
    }

    private static boolean conflict(Step one, Step other) {
        return one.act != Act.WAIT
                && other.act != Act.WAIT
                && one.other == other.other
                && (one.act != Act.USE || other.act != Act.USE || one.isWrite || other.isWrite);
    }

    /// The earlier steps that a new one conflicts with and that no path orders before it; of each stream the last.
    private static List<Integer> unordered(List<Step> steps, Step next) {
        List<Step> all = new ArrayList<>(steps);
        all.add(next);
        BitSet before = before(all, all.size() - 1);
        List<Integer> unordered = new ArrayList<>();
        BitSet seen = new BitSet();
        for (int i = steps.size() - 1; i >= 0; i--) {
            if (conflict(steps.get(i), next) && !before.get(i) && !seen.get(steps.get(i).stream)) {
                seen.set(steps.get(i).stream);
                unordered.add(i);
            }
        }
        return unordered;
    }

    /// All steps that come before one: on its stream, or by a wait.
    private static BitSet before(List<Step> steps, int last) {
        BitSet before = new BitSet();
        BitSet open = new BitSet();
        open.set(last);
        while (!open.isEmpty()) {
            int at = open.length() - 1;
            open.clear(at);
            before.set(at);
            Step step = steps.get(at);
            addPrevious(steps, at, step.stream, before, open);
            if (step.act == Act.WAIT) {
                addPrevious(steps, at, step.other, before, open);
            }
        }
        return before;
    }

    private static void addPrevious(List<Step> steps, int at, int stream, BitSet before, BitSet open) {
        for (int i = at - 1; i >= 0; i--) {
            if (steps.get(i).stream == stream) {
                if (!before.get(i)) {
                    open.set(i);
                }
                return;
            }
        }
    }

    private static boolean isOrdered(List<Step> steps) {
        for (int i = 0; i < steps.size(); i++) {
            BitSet before = before(steps, i);
            for (int j = 0; j < i; j++) {
                if (conflict(steps.get(j), steps.get(i)) && !before.get(j)) {
                    return false;
                }
            }
        }
        return true;
    }

    private static void run(WatchedMemory watched, List<Step> steps, int capturedFrom) {
        long[] streams = new long[STREAMS];
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = watched.busyStream();
        }
        long[] blocks = new long[STEPS];
        run(watched, steps.subList(0, capturedFrom), streams, blocks);
        List<Step> rest = steps.subList(capturedFrom, steps.size());
        if (rest.isEmpty()) {
            return;
        }
        Graphs graphs = watched.memory.driver().graphs();
        graphs.beginCapture(0, streams[0], CaptureMode.RELAXED);
        run(watched, rest, streams, blocks);
        for (int i = 1; i < STREAMS; i++) {
            watched.order(streams[i], streams[0]);
        }
        graphs.launch(0, graphs.instantiate(0, graphs.endCapture(0, streams[0]), false), streams[0]);
    }

    private static void run(WatchedMemory watched, List<Step> steps, long[] streams, long[] blocks) {
        for (Step step : steps) {
            long stream = streams[step.stream];
            switch (step.act) {
                case ALLOCATE -> blocks[step.other] = watched.allocate(BYTES, stream);
                case USE -> watched.hazards.used(0, stream, blocks[step.other], BYTES, step.isWrite);
                case FREE -> watched.memory.free(blocks[step.other], stream);
                case WAIT -> watched.order(streams[step.other], stream);
            }
        }
    }

    @Test
    void aLostWaitIsFoundAndNothingElse() {
        assertThatLostWaitsAreFound(SeededHazardsTests::program, false);
    }

    @Test
    void aLostWaitInsideOfACaptureIsFoundAndNothingElse() {
        assertThatLostWaitsAreFound(SeededHazardsTests::captured, true);
    }

    private static void assertThatLostWaitsAreFound(
            Function<SplittableRandom, List<Step>> programs, boolean isCaptured) {
        int lost = 0;
        for (int seed = 0; seed < PROGRAMS; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            List<Step> steps = programs.apply(random);
            assertThat(isOrdered(steps)).isTrue();
            assertThat(hazards(steps, isCaptured)).as("seed %d, ordered", seed).isEmpty();
            List<Step> fewer = withoutAWait(steps, random, isCaptured ? FORK.size() : 0);
            boolean isOrdered = isOrdered(fewer);
            lost += isOrdered ? 0 : 1;
            assertThat(hazards(fewer, isCaptured).isEmpty())
                    .as("seed %d, without a wait that %s needed", seed, isOrdered ? "nobody" : "a step")
                    .isEqualTo(isOrdered);
        }
        assertThat(lost).as("programs that lost a wait that they need").isGreaterThan(PROGRAMS / 2);
    }

    /// The allocator itself must make no stream wait for another, or the graph of steps would lack its waits.
    private static List<StreamHazard> hazards(List<Step> steps, boolean isCaptured) {
        SimulatedGpu gpu =
                SimulatedGpu.builder().devices(1).capacityBytes(256 << 20).build();
        try (WatchedMemory watched = new WatchedMemory("caching:reuse=never", "list", gpu)) {
            run(watched, steps, isCaptured ? STREAMS : steps.size());
            return watched.hazards.list();
        }
    }

    /// @param from where the waits begin that may go
    private static List<Step> withoutAWait(List<Step> steps, SplittableRandom random, int from) {
        List<Integer> waits = new ArrayList<>();
        for (int i = from; i < steps.size(); i++) {
            if (steps.get(i).act == Act.WAIT) {
                waits.add(i);
            }
        }
        List<Step> fewer = new ArrayList<>(steps);
        if (!waits.isEmpty()) {
            fewer.remove((int) waits.get(random.nextInt(waits.size())));
        }
        return fewer;
    }
}
