package io.cistern.benchmarks.generated;

import io.cistern.benchmarks.generated.Network.Layer;
import java.util.ArrayList;
import java.util.List;

/// A network in training, with an optimizer that keeps two moments in single precision: its weights,
/// gradients and state.
final class Trainee {
    private final Program program;
    private final Network network;
    private final long stream;
    private final List<Block> weights;
    private final List<Block> moments = new ArrayList<>();
    private final List<Block> gradients = new ArrayList<>();

    Trainee(Program program, Network network, long stream) {
        this.program = program;
        this.network = network;
        this.stream = stream;
        weights = network.load(program, stream);
    }

    /// Runs a forward pass and keeps the activations of each layer.
    List<Block> forward(long samples) {
        List<Block> kept = new ArrayList<>();
        for (Layer layer : network.layers()) {
            for (int i = 0; i < layer.kept().size(); i++) {
                if (i < layer.passing().size()) {
                    Block workspace = program.allocate(layer.passing().get(i) * samples, stream);
                    kept.add(program.allocate(layer.kept().get(i) * samples, stream));
                    program.free(workspace);
                } else {
                    kept.add(program.allocate(layer.kept().get(i) * samples, stream));
                }
            }
        }
        return kept;
    }

    /// Goes through the layers in reverse order and frees the activations. It creates gradients, or adds to
    /// those that exist.
    void backward(List<Block> kept) {
        boolean adds = !gradients.isEmpty();
        Block former = program.allocate(kept.getLast().byteSize(), stream);
        for (Layer layer : network.layers().reversed()) {
            for (int i = layer.kept().size() - 1; i >= 0; i--) {
                Block activation = kept.removeLast();
                Block next = program.allocate(activation.byteSize(), stream);
                for (int j = i; j < layer.weights().size(); j += layer.kept().size()) {
                    addGradient(layer.weights().get(j), adds);
                }
                program.free(activation);
                program.free(former);
                former = next;
            }
        }
        program.free(former);
    }

    private void addGradient(long byteSize, boolean adds) {
        if (adds) {
            program.pass(byteSize, stream);
        } else {
            gradients.add(program.allocate(byteSize, stream));
        }
    }

    List<Block> gradients() {
        return gradients;
    }

    /// Updates the weights by the gradients and frees the gradients. The first step creates
    /// the optimizer's state.
    void step() {
        boolean first = moments.isEmpty();
        for (Block weight : weights) {
            if (first) {
                moments.add(program.allocate(2 * weight.byteSize(), stream));
                moments.add(program.allocate(2 * weight.byteSize(), stream));
            }
            program.pass(2 * weight.byteSize(), stream);
        }
        program.freeAll(gradients);
    }

    /// Frees everything.
    void end() {
        program.freeAll(gradients);
        program.freeAll(moments);
        program.freeAll(weights);
    }
}
