package io.cistern.benchmarks.generated;

import java.util.stream.LongStream;

/// Training that accumulates gradients over some micro-batches before the optimizer uses them, so gradients
/// live far longer than activations. Batches come in a few lengths. Now and then the program evaluates the
/// model on larger batches and keeps nothing of them.
final class Accumulation implements Runnable {
    private final Program program;
    private final Network network;
    private final long[] buckets;
    private final long evaluatedSamples;
    private final int microBatches;
    private final int rows;

    Accumulation(Program program) {
        this.program = program;
        network = Network.any(program, program.share(0.01, 0.06));
        long most = network.samplesKeptIn(program.share(0.15, 0.42));
        int lengths = program.between(2, 6);
        buckets = LongStream.rangeClosed(1, lengths)
                .map(i -> Math.max(1, most * i / lengths))
                .toArray();
        evaluatedSamples = network.samplesPassingIn(program.share(0.1, 0.4));
        microBatches = program.between(2, 8);
        rows = program.between(15_000, 45_000);
    }

    @Override
    public void run() {
        Trainee trainee = new Trainee(program, network, Program.MAIN_STREAM);
        int stepsToEvaluation = program.between(1, 4);
        for (int step = 1; program.rows() < rows; step++) {
            for (int i = 0; i < microBatches; i++) {
                trainee.backward(trainee.forward(buckets[program.choose(buckets.length)]));
            }
            trainee.step();
            if (step % stepsToEvaluation == 0) {
                evaluate();
            }
        }
        trainee.end();
    }

    private void evaluate() {
        for (int batch = program.between(2, 8); batch > 0; batch--) {
            network.infer(program, Math.max(1, evaluatedSamples * program.between(1, 4) / 4), Program.MAIN_STREAM);
        }
    }
}
