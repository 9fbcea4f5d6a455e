package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// The shape of a random neural network in half precision: the parameters of its layers, and their buffers
/// for one sample.
///
/// @param layers in the order of a forward pass
record Network(List<Layer> layers) {
    /// The memory of a layer.
    ///
    /// @param weights bytes of each parameter
    /// @param kept bytes for one sample in each activation that the backward pass needs
    /// @param passing bytes for one sample in each buffer that is freed within the layer
    record Layer(List<Long> weights, List<Long> kept, List<Long> passing) {}

    /// Draws a transformer: attention and two wide matrices in each layer, and the logits of a vocabulary; a
    /// sample is a token.
    static Network transformer(Program program, long weightBytes, int depth) {
        long hidden = rounded(Math.sqrt(weightBytes / 24.0 / depth), 64);
        long line = 2 * hidden;
        Layer block = new Layer(
                List.of(
                        line,
                        line,
                        3 * line * hidden,
                        3 * line,
                        line * hidden,
                        line,
                        line,
                        4 * line * hidden,
                        4 * line,
                        4 * line * hidden,
                        line),
                List.of(line, 3 * line, line, 64L, line, 4 * line, 4 * line, line),
                List.of(line, 3 * line, 2 * line));
        List<Layer> layers = new ArrayList<>();
        for (int i = 0; i < depth; i++) {
            layers.add(block);
        }
        long vocabulary = hidden * program.between(3, 8);
        layers.add(new Layer(List.of(2 * vocabulary * hidden), List.of(line, 2 * vocabulary), List.of(4 * vocabulary)));
        return new Network(layers);
    }

    /// Draws four stages of convolutions, each with half the resolution and twice the channels; a sample
    /// is a picture.
    static Network convolutions(Program program, long weightBytes) {
        int depth = program.between(2, 6);
        long channels = rounded(Math.sqrt(weightBytes / 1530.0 / depth), 8);
        long side = 7L * program.between(4, 8);
        List<Layer> layers = new ArrayList<>();
        for (int stage = 0; stage < 4; stage++) {
            long width = channels << stage;
            long line = 2 * width;
            long picture = Math.max(1, (side >> stage) * (side >> stage)) * line;
            for (int i = 0; i < depth; i++) {
                layers.add(new Layer(
                        List.of(9 * line * width, line, line),
                        List.of(picture, picture, 2 * line, picture / 16),
                        List.of(picture * (1 + i % 3))));
            }
        }
        return new Network(layers);
    }

    /// Draws a transformer or convolutions.
    static Network any(Program program, long weightBytes) {
        return program.chance(0.6)
                ? transformer(program, weightBytes, program.between(6, 28))
                : convolutions(program, weightBytes);
    }

    private static long rounded(double value, long unit) {
        return Math.max(unit, Math.round(value / unit) * unit);
    }

    /// Returns how many samples a forward pass can keep in that many bytes, at least 1.
    long samplesKeptIn(long byteSize) {
        return Math.max(
                1,
                byteSize / layers.stream().mapToLong(layer -> sum(layer.kept())).sum());
    }

    /// Returns how many samples can pass within that many bytes if nothing is kept, at least 1.
    long samplesPassingIn(long byteSize) {
        return Math.max(1, byteSize / peakOfPassing(1));
    }

    /// Returns the peak of live bytes in a forward pass that keeps nothing, or a little less.
    long peakOfPassing(long samples) {
        return samples
                * layers.stream()
                        .mapToLong(layer -> 2 * largest(layer.kept()) + largest(layer.passing()))
                        .max()
                        .orElse(1);
    }

    /// Returns the bytes of the last layer's output.
    long outputBytes(long samples) {
        return samples * layers.getLast().kept().getLast();
    }

    private static long sum(List<Long> byteSizes) {
        return byteSizes.stream().mapToLong(Long::longValue).sum();
    }

    private static long largest(List<Long> byteSizes) {
        return byteSizes.stream().mapToLong(Long::longValue).max().orElse(0);
    }

    /// Allocates the parameters.
    List<Block> load(Program program, long stream) {
        List<Block> weights = new ArrayList<>();
        for (Layer layer : layers) {
            layer.weights().forEach(byteSize -> weights.add(program.allocate(byteSize, stream)));
        }
        return weights;
    }

    /// Runs a forward pass that keeps nothing: it frees each activation once the next one exists.
    void infer(Program program, long samples, long stream) {
        Block former = program.allocate(8 * samples, stream);
        for (Layer layer : layers) {
            for (int i = 0; i < layer.kept().size(); i++) {
                Block next = program.allocate(layer.kept().get(i) * samples, stream);
                if (i < layer.passing().size()) {
                    program.pass(layer.passing().get(i) * samples, stream);
                }
                program.free(former);
                former = next;
            }
        }
        program.free(former);
    }
}
