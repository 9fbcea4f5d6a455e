package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// Training spread over streams: one copies the next batches, one sums gradients up in buckets for other
/// devices, and each side branch of the model has its own. A stream that takes over data waits for the stream
/// that made it, and a block's use on a second stream is recorded.
final class Streams {
    private static final long STREAM = Program.MAIN_STREAM;
    private static final long COPIES = 2;
    private static final long SUMS = 3;
    private static final long FIRST_BRANCH = 4;

    private final Program program;
    private final Trainee trunk;
    private final List<Trainee> branches = new ArrayList<>();
    private final List<Block> ahead = new ArrayList<>();
    private final long trunkSamples;
    private final long branchSamples;
    private final long inputBytes;
    private final int batchesAhead;
    private final int bucketParts;
    private final int rows;

    Streams(Program program) {
        this.program = program;
        int count = program.between(1, 3);
        Network network = Network.any(program, program.share(0.01, 0.04));
        Network branch = Network.transformer(program, program.share(0.005, 0.02) / count, program.between(2, 6));
        trunkSamples = network.samplesKeptIn(program.share(0.12, 0.25));
        branchSamples = branch.samplesKeptIn(program.share(0.05, 0.15) / count);
        trunk = new Trainee(program, network, STREAM);
        for (int i = 0; i < count; i++) {
            branches.add(new Trainee(program, branch, FIRST_BRANCH + i));
        }
        batchesAhead = program.between(1, 4);
        inputBytes = program.share(0.01, 0.06) / (batchesAhead + 1);
        bucketParts = program.between(4, 16);
        rows = program.between(15_000, 45_000);
    }

    void run() {
        while (program.rows() < rows) {
            copyAhead();
            Block input = ahead.removeFirst();
            program.use(input, STREAM);
            step(program.between(0.7, 1));
            program.free(input);
        }
        program.freeAll(ahead);
        branches.forEach(Trainee::end);
        trunk.end();
    }

    private void copyAhead() {
        while (ahead.size() <= batchesAhead) {
            ahead.add(program.allocate((long) (inputBytes * program.between(0.7, 1)), COPIES));
        }
    }

    private void step(double size) {
        List<List<Block>> kept = new ArrayList<>();
        for (int i = 0; i < branches.size(); i++) {
            program.await(FIRST_BRANCH + i, STREAM);
            kept.add(branches.get(i).forward(Math.max(1, (long) (branchSamples * size))));
        }
        List<Block> keptOfTrunk = trunk.forward(Math.max(1, (long) (trunkSamples * size)));
        kept.forEach(branch -> program.use(branch.getLast(), STREAM));
        trunk.backward(keptOfTrunk);
        sumGradients();
        for (int i = 0; i < branches.size(); i++) {
            program.await(FIRST_BRANCH + i, STREAM);
            branches.get(i).backward(kept.get(i));
        }
        trunk.step();
        branches.forEach(Trainee::step);
    }

    private void sumGradients() {
        List<Block> gradients = trunk.gradients();
        int part = Math.max(1, gradients.size() / bucketParts);
        for (int from = 0; from < gradients.size(); from += part) {
            List<Block> bucket = gradients.subList(from, Math.min(gradients.size(), from + part));
            long byteSize = bucket.stream().mapToLong(Block::byteSize).sum();
            program.await(SUMS, STREAM);
            Block flat = program.allocate(byteSize, SUMS);
            program.use(flat, STREAM);
            program.free(flat);
        }
    }
}
