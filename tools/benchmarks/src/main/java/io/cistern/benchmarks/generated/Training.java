package io.cistern.benchmarks.generated;

/// A training loop whose batches differ in length from step to step, like sentences or pictures of any size,
/// each padded a little. The forward pass keeps activations and the backward pass frees them in reverse order.
/// Gradients live for a step; weights and the optimizer's state, which the first step creates, live throughout.
final class Training {
    private Training() {}

    static void run(Program program) {
        Network network = Network.any(program, program.share(0.01, 0.06));
        long mostSamples = network.samplesKeptIn(program.share(0.2, 0.42));
        double shortest = program.between(0.2, 0.9);
        int rows = program.between(12_000, 45_000);
        Trainee trainee = new Trainee(program, network, Program.MAIN_STREAM);
        long padding = Math.max(1, mostSamples / 128);
        while (program.rows() < rows) {
            long drawn = (long) (mostSamples * program.between(shortest, 1));
            long samples = Math.max(padding, drawn / padding * padding);
            Block batch = program.allocate(16 * samples, Program.MAIN_STREAM);
            trainee.backward(trainee.forward(samples));
            trainee.step();
            program.free(batch);
        }
        trainee.end();
    }
}
