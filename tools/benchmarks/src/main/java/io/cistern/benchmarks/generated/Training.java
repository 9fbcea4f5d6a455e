package io.cistern.benchmarks.generated;

/// A training loop whose batches differ in length from step to step, like sentences or pictures of any size,
/// each padded a little. The forward pass keeps activations and the backward pass frees them in reverse order.
/// Gradients live for a step; weights and the optimizer's state, which the first step creates, live throughout.
final class Training implements Runnable {
    private final Program program;
    private final Network network;
    private final long mostSamples;
    private final double shortest;
    private final int rows;

    Training(Program program) {
        this.program = program;
        network = Network.any(program, program.share(0.01, 0.06));
        mostSamples = network.samplesKeptIn(program.share(0.2, 0.42));
        shortest = program.between(0.2, 0.9);
        rows = program.between(12_000, 45_000);
    }

    @Override
    public void run() {
        Trainee trainee = new Trainee(program, network, Program.MAIN_STREAM);
        while (program.rows() < rows) {
            long samples = samples();
            Block batch = program.allocate(16 * samples, Program.MAIN_STREAM);
            trainee.backward(trainee.forward(samples));
            trainee.step();
            program.free(batch);
        }
        trainee.end();
    }

    private long samples() {
        long padding = Math.max(1, mostSamples / 128);
        long samples = (long) (mostSamples * program.between(shortest, 1));
        return Math.max(padding, samples / padding * padding);
    }
}
