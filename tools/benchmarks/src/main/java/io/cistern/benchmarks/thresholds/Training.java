package io.cistern.benchmarks.thresholds;

import io.cistern.benchmarks.thresholds.StudiedProgram.Block;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.SplittableRandom;

/// Alternating training and evaluation. Weights and optimizer stay. A training step keeps the results of its
/// forward pass until the backward pass frees them; an evaluation step keeps two layers. Batch sizes differ by
/// up to a quarter. Each step ends with a synchronisation, as if it read its loss.
///
/// | | weights | a step | kernels a step |
/// |---|---|---|---|
/// | training | 3 GiB | 48 layers, 12 GiB at most, temporaries on the way | 96 ms |
/// | evaluation | the same | 48 layers, 0.5 GiB at once | 24 ms |
final class Training {
    private static final long MIB = 1L << 20;
    private static final int LAYERS = 48;
    private static final long LAYER_BYTES = 250 * MIB;
    private static final long KERNEL_NANOS = 1_000_000;

    private final StudiedProgram program;
    private final SplittableRandom random;

    Training(StudiedProgram program, long seed) {
        this.program = program;
        random = new SplittableRandom(seed);
    }

    /// Returns a workload that trains and evaluates in turns.
    static Workload workload(String name, int turns, int trainingSteps, int evaluationSteps) {
        return Workload.phases(name, gpu -> {
            Training training = new Training(gpu.program(), 1);
            Deque<Block> weights = training.weights();
            for (int turn = 0; turn < turns; turn++) {
                for (int step = 0; step < trainingSteps; step++) {
                    training.train();
                }
                for (int step = 0; step < evaluationSteps; step++) {
                    training.evaluate();
                }
            }
            training.program.freeAll(weights);
            training.program.synchronize();
        });
    }

    private Deque<Block> weights() {
        Deque<Block> weights = new ArrayDeque<>();
        for (int layer = 0; layer < LAYERS; layer++) {
            weights.add(program.use(64 * MIB, KERNEL_NANOS));
        }
        return weights;
    }

    private void train() {
        long layerBytes = batch(LAYER_BYTES);
        Deque<Block> activations = new ArrayDeque<>();
        for (int layer = 0; layer < LAYERS; layer++) {
            Block temporary = program.use(layerBytes / 4, KERNEL_NANOS / 2);
            activations.add(program.use(layerBytes, KERNEL_NANOS / 2));
            program.free(temporary);
        }
        while (!activations.isEmpty()) {
            Block gradient = program.use(layerBytes / 4, KERNEL_NANOS);
            program.free(activations.removeLast());
            program.free(gradient);
        }
        program.synchronize();
    }

    private void evaluate() {
        long layerBytes = batch(LAYER_BYTES);
        Block former = program.use(layerBytes, KERNEL_NANOS / 2);
        for (int layer = 1; layer < LAYERS; layer++) {
            Block next = program.use(layerBytes, KERNEL_NANOS / 2);
            program.free(former);
            former = next;
        }
        program.free(former);
        program.synchronize();
    }

    private long batch(long byteSize) {
        return (long) (byteSize * (0.75 + 0.25 * random.nextDouble()));
    }
}
