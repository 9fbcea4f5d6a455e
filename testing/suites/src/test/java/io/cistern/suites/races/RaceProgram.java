package io.cistern.suites.races;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/// The steps of a program of several streams, and which of them nothing orders: judged by another way than vector
/// clocks, by paths in the graph of the steps.
///
/// @param steps what the host enqueues, in its order
/// @param capturedFrom the first step that a capture on stream 0 takes; the number of steps if nothing is captured
record RaceProgram(List<Step> steps, int capturedFrom) {
    static final int STREAMS = 4;
    private static final int STEPS = 40;

    enum Act {
        ALLOCATE,
        USE,
        FREE,
        WAIT
    }

    /// @param other the block; of a wait, the stream that is waited for
    record Step(Act act, int stream, int other, boolean isWrite) {}

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

    /// Draws a program of captured uses, in which each comes after those that it conflicts with.
    static RaceProgram captured(SplittableRandom random) {
        List<Step> steps = new ArrayList<>(FORK);
        while (steps.size() < STEPS) {
            Step next = new Step(Act.USE, random.nextInt(STREAMS), random.nextInt(STREAMS), random.nextInt(10) > 5);
            addOrdered(steps, next);
        }
        return new RaceProgram(steps, STREAMS);
    }

    /// Draws a program in which each use comes after those that it conflicts with.
    static RaceProgram plain(SplittableRandom random) {
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
        return new RaceProgram(steps, steps.size());
    }

    /// Returns the program without one of its waits; null if it has none that may go.
    @Nullable
    RaceProgram withoutAWait(SplittableRandom random) {
        boolean isCaptured = capturedFrom < steps.size();
        List<Integer> waits = new ArrayList<>();
        for (int i = isCaptured ? FORK.size() : 0; i < steps.size(); i++) {
            if (steps.get(i).act == Act.WAIT) {
                waits.add(i);
            }
        }
        if (waits.isEmpty()) {
            return null;
        }
        List<Step> fewer = new ArrayList<>(steps);
        fewer.remove((int) waits.get(random.nextInt(waits.size())));
        return new RaceProgram(fewer, isCaptured ? capturedFrom : fewer.size());
    }

    boolean isOrdered() {
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

    /// Whether two steps conflict and no path orders them.
    boolean isRace(int earlier, int later) {
        return earlier < later
                && conflict(steps.get(earlier), steps.get(later))
                && !before(steps, later).get(earlier);
    }

    private static void addOrdered(List<Step> steps, Step next) {
        for (int before : unordered(steps, next)) {
            steps.add(new Step(Act.WAIT, next.stream, steps.get(before).stream, false));
        }
        steps.add(next);
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
}
