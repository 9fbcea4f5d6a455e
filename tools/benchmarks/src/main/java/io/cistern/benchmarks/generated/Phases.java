package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// Alternating training and evaluation. Training keeps the activations of each of 48 layers until its backward
/// pass, up to 70 percent of the device; evaluation keeps one layer. Weights take another 15 percent, and
/// batches differ in size.
final class Phases implements Runnable {
    private static final int LAYERS = 48;

    private final Program program;

    Phases(Program program) {
        this.program = program;
    }

    @Override
    public void run() {
        long weightBytes = program.capacityBytes() * 15 / 100 / LAYERS;
        for (int layer = 0; layer < LAYERS; layer++) {
            program.allocate(weightBytes, 1);
        }
        for (int turn = 0; turn < 3; turn++) {
            for (int step = 0; step < 20; step++) {
                train(batch());
            }
            for (int step = 0; step < 60; step++) {
                evaluate(batch());
            }
        }
    }

    private long batch() {
        return program.anyOf(program.capacityBytes() * 35 / 100 / LAYERS, program.capacityBytes() / 2 / LAYERS);
    }

    private void train(long layerBytes) {
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

    private void evaluate(long layerBytes) {
        Block former = program.allocate(layerBytes, 1);
        for (int layer = 1; layer < LAYERS; layer++) {
            Block next = program.allocate(layerBytes, 1);
            program.free(former);
            former = next;
        }
        program.free(former);
    }
}
