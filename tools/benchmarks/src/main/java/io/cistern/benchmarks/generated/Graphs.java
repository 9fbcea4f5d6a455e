package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// Inference by captured graphs, one for each batch size. A capture on a stream of its own leaves a graph's
/// inputs, outputs and private memory in place while the graph lives; replays allocate only the buffers around
/// them. A batch without a graph runs directly, and may then be captured instead of an older graph.
final class Graphs {
    private static final long STREAM = Program.MAIN_STREAM;
    private static final long CAPTURE_STREAM = 2;

    /// A captured graph's memory; the first block is its input, the last one its output.
    private record Graph(long samples, List<Block> memory) {}

    private final Program program;
    private final Network network;
    private final List<Block> weights;
    private final List<Graph> graphs = new ArrayList<>();
    private final long mostSamples;
    private final int mostGraphs;
    private final int sizes;
    private final int rows;

    Graphs(Program program) {
        this.program = program;
        network = Network.any(program, program.share(0.05, 0.3));
        weights = network.load(program, STREAM);
        mostGraphs = program.between(3, 8);
        sizes = program.between(mostGraphs, 2 * mostGraphs);
        mostSamples = network.samplesPassingIn(program.share(0.2, 0.5) / (mostGraphs + 1));
        rows = program.between(12_000, 40_000);
    }

    void run() {
        while (program.rows() < rows) {
            long samples = Math.max(1, mostSamples * program.between(1, sizes) / sizes);
            graphs.stream()
                    .filter(graph -> graph.samples() == samples)
                    .findFirst()
                    .ifPresentOrElse(this::replay, () -> runWithout(samples));
        }
        graphs.forEach(graph -> program.freeAll(graph.memory()));
        program.freeAll(weights);
    }

    private void runWithout(long samples) {
        network.infer(program, samples, STREAM);
        if (program.chance(0.3)) {
            if (graphs.size() == mostGraphs) {
                program.freeAll(graphs.remove(program.choose(mostGraphs)).memory());
            }
            graphs.add(capture(samples));
        }
    }

    /// A graph reuses memory from layer to layer, so it keeps about the peak of one pass, in pieces.
    private Graph capture(long samples) {
        program.await(CAPTURE_STREAM, STREAM);
        long peakBytes = network.peakOfPassing(samples);
        List<Block> memory = new ArrayList<>();
        memory.add(program.allocate(8 * samples, CAPTURE_STREAM));
        int pieces = program.between(2, 12);
        for (int i = 0; i < pieces; i++) {
            memory.add(program.allocate(Math.max(512, peakBytes / pieces), CAPTURE_STREAM));
        }
        memory.add(program.allocate(network.outputBytes(samples), CAPTURE_STREAM));
        memory.forEach(block -> program.use(block, STREAM));
        return new Graph(samples, memory);
    }

    private void replay(Graph graph) {
        for (int token = program.between(4, 32); token > 0; token--) {
            Block staged = program.allocate(graph.memory().getFirst().byteSize(), STREAM);
            Block result = program.allocate(graph.memory().getLast().byteSize(), STREAM);
            program.pass(result.byteSize() / 2, STREAM);
            program.free(staged);
            program.pass(512 * graph.samples(), STREAM);
            program.free(result);
        }
    }
}
