package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// Programs that fragment memory on purpose; all but [#shortStreams] leave blocks behind.
final class Fragmenting {
    private static final int LAYERS = 48;

    private Fragmenting() {}

    /// Long-lived small and middle-sized blocks, each allocated between large, short-lived ones.
    static void longLived(Program program) {
        List<Block> kept = new ArrayList<>();
        List<Block> passing = new ArrayList<>();
        for (int i = 0; i < 12_000; i++) {
            if (program.liveBytes() > 0.7 * program.capacityBytes() || program.chance(0.45)) {
                program.freeOneOf(passing);
            } else {
                passing.add(program.allocate(program.anyOf(1 << 20, program.capacityBytes() / 64), 1));
            }
            if (program.chance(0.3)) {
                kept.add(program.allocate(program.anyOf(256, 2 << 20), 1));
            }
            if (kept.size() > 1_500) {
                program.freeOneOf(kept);
            }
        }
    }

    /// Key-value caches of 48 sequences that grow by copying until their sequence ends; each new sequence starts
    /// larger than the one before.
    static void drifting(Program program) {
        long mostBytes = program.capacityBytes() / 96;
        List<Block> caches = new ArrayList<>();
        long startBytes = mostBytes / 64;
        for (int i = 0; i < 48; i++) {
            caches.add(program.allocate(program.anyOf(startBytes, mostBytes), 1));
        }
        for (int i = 0; i < 15_000; i++) {
            int chosen = program.choose(caches.size());
            Block former = caches.get(chosen);
            long grown = former.byteSize() + former.byteSize() / 16 + program.anyOf(256, 64 << 10);
            startBytes += startBytes / 4096;
            boolean ends = grown > mostBytes || program.chance(0.02);
            caches.set(chosen, program.allocate(ends ? Math.min(startBytes, mostBytes) : grown, 1));
            program.free(former);
        }
    }

    /// A thousand streams, three at a time; each has its own working set, which it frees when it ends.
    static void shortStreams(Program program) {
        List<Block> former = List.of();
        for (int stream = 1; stream <= 1_000; stream++) {
            List<Block> own = new ArrayList<>();
            long wantedBytes = program.capacityBytes() / 64;
            for (long bytes = 0; bytes < wantedBytes; bytes += own.getLast().byteSize()) {
                own.add(program.allocate(program.anyOf(512, wantedBytes / 4), stream));
                if (program.chance(0.3)) {
                    program.freeOneOf(own);
                    own.add(program.allocate(program.anyOf(512, 1 << 20), stream));
                }
            }
            program.end(former);
            former = own;
        }
        program.end(former);
    }

    /// Fills 95 percent of the device and frees almost everything again, with other sizes each time.
    static void sawtooth(Program program) {
        long fullBytes = (long) (0.95 * program.capacityBytes());
        List<Block> live = new ArrayList<>();
        for (int tooth = 0; tooth < 8; tooth++) {
            long leastBytes = 4L << 10 << tooth;
            long room = fullBytes - program.liveBytes();
            while (room >= leastBytes) {
                long byteSize = program.anyOf(leastBytes, program.capacityBytes() / 128);
                live.add(program.allocate(Math.min(room, byteSize), 1));
                room = fullBytes - program.liveBytes();
            }
            while (program.liveBytes() > program.capacityBytes() / 50) {
                program.freeOneOf(live);
            }
        }
    }

    /// Alternating training and evaluation. Training keeps the activations of each of 48 layers until its backward
    /// pass, up to 70 percent of the device; evaluation keeps one layer. Weights take another 15 percent, and
    /// batches differ in size.
    static void phases(Program program) {
        for (int layer = 0; layer < LAYERS; layer++) {
            program.allocate(program.capacityBytes() * 15 / 100 / LAYERS, 1);
        }
        for (int turn = 0; turn < 3; turn++) {
            for (int step = 0; step < 20; step++) {
                train(program, batch(program));
            }
            for (int step = 0; step < 60; step++) {
                evaluate(program, batch(program));
            }
        }
    }

    private static long batch(Program program) {
        return program.anyOf(program.capacityBytes() * 35 / 100 / LAYERS, program.capacityBytes() / 2 / LAYERS);
    }

    private static void train(Program program, long layerBytes) {
        List<Block> kept = new ArrayList<>();
        for (int layer = 0; layer < LAYERS; layer++) {
            Block passing = program.allocate(layerBytes / 4, 1);
            kept.add(program.allocate(layerBytes, 1));
            program.free(passing);
        }
        while (!kept.isEmpty()) {
            Block gradient = program.allocate(layerBytes / 4, 1);
            program.free(kept.removeLast());
            program.free(gradient);
        }
    }

    private static void evaluate(Program program, long layerBytes) {
        Block former = program.allocate(layerBytes, 1);
        for (int layer = 1; layer < LAYERS; layer++) {
            Block next = program.allocate(layerBytes, 1);
            program.free(former);
            former = next;
        }
        program.free(former);
    }
}
