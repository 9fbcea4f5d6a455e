package io.cistern.benchmarks.generated;

/// Training that accumulates gradients over some micro-batches before the optimizer uses them, so gradients
/// live far longer than activations. Batches come in a few lengths. Now and then the program evaluates the
/// model on larger batches and keeps nothing of them.
final class Accumulation {
    private Accumulation() {}

    static void run(Program program) {
        Network network = Network.any(program, program.share(0.01, 0.06));
        long most = network.samplesKeptIn(program.share(0.15, 0.42));
        int lengths = program.between(2, 6);
        long evaluatedSamples = network.samplesPassingIn(program.share(0.1, 0.4));
        int microBatches = program.between(2, 8);
        int rows = program.between(15_000, 45_000);
        Trainee trainee = new Trainee(program, network, Program.MAIN_STREAM);
        int stepsToEvaluation = program.between(1, 4);
        for (int step = 1; program.rows() < rows; step++) {
            for (int i = 0; i < microBatches; i++) {
                long length = program.choose(lengths) + 1L;
                trainee.backward(trainee.forward(Math.max(1, most * length / lengths)));
            }
            trainee.step();
            if (step % stepsToEvaluation == 0) {
                for (int batch = program.between(2, 8); batch > 0; batch--) {
                    long samples = Math.max(1, evaluatedSamples * program.between(1, 4) / 4);
                    network.infer(program, samples, Program.MAIN_STREAM);
                }
            }
        }
        trainee.end();
    }
}
