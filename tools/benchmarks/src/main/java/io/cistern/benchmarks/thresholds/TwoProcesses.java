package io.cistern.benchmarks.thresholds;

import io.cistern.benchmarks.thresholds.StudiedProgram.Block;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayDeque;
import java.util.Deque;

/// Two programs on a device of 16 GiB. Each keeps 1 GiB and takes turns of about a second with 10 GiB more, in
/// steps; the device has room for one such step at a time. A refused program waits 20 ms and tries again, for
/// up to a second; then it loses its turn.
final class TwoProcesses {
    private static final long MIB = 1L << 20;
    private static final int TURNS = 20;
    private static final int STEPS = 20;
    private static final int TRIES = 50;
    private static final long WAIT_NANOS = 20_000_000;
    private static final int BLOCKS = 40;

    private final StudiedProgram first;
    private final StudiedProgram second;
    private final Rest rest;
    private int turnsLost;

    private TwoProcesses(StudiedProgram first, StudiedProgram second, Rest rest) {
        this.first = first;
        this.second = second;
        this.rest = rest;
    }

    /// The behaviour of a program while the other one has its turn.
    enum Rest {
        /// Allocates 256 MiB for each of the other's steps.
        GO_ON("that go on"),
        /// Makes no call at all.
        REST("that rest"),
        /// Calls `trim` once at the end of its own turn, then makes no call.
        TRIM_AND_REST("that trim and rest");

        private final String label;

        Rest(String label) {
            this.label = label;
        }
    }

    static Workload workload(Rest rest) {
        return new Workload("two processes " + rest.label, "phases", 16 * Workload.GIB, gpu -> {
            TwoProcesses both = new TwoProcesses(gpu.program(), gpu.program(), rest);
            both.run();
            gpu.loseTurns(both.turnsLost);
        });
    }

    private void run() {
        Block one = first.use(1024 * MIB, 1_000_000);
        Block other = second.use(1024 * MIB, 1_000_000);
        for (int turn = 0; turn < TURNS; turn++) {
            StudiedProgram working = turn % 2 == 0 ? first : second;
            turn(working, working == first ? second : first);
        }
        first.free(one);
        second.free(other);
        first.synchronize();
        second.synchronize();
    }

    private void turn(StudiedProgram working, StudiedProgram other) {
        int tries = 0;
        for (int step = 0; step < STEPS && tries < TRIES; ) {
            if (step(working, BLOCKS, 1_000_000)) {
                step++;
            } else {
                tries++;
                working.pause(WAIT_NANOS);
            }
            if (rest == Rest.GO_ON) {
                step(other, 1, 1_000_000);
            }
        }
        turnsLost += tries < TRIES ? 0 : 1;
        if (rest == Rest.TRIM_AND_REST) {
            working.trim(0);
        }
    }

    private static boolean step(StudiedProgram program, int blocks, long kernelNanos) {
        Deque<Block> live = new ArrayDeque<>();
        try {
            for (int i = 0; i < blocks; i++) {
                live.add(program.use(256 * MIB, kernelNanos));
            }
            return true;
        } catch (DeviceOutOfMemoryException full) {
            return false;
        } finally {
            program.freeAll(live);
            program.synchronize();
        }
    }
}
