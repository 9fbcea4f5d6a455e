package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// A language model that generates text for one batch of prompts after another. With every token, each
/// layer's key and value caches grow by copying, beside small buffers for the token itself, until the batch
/// has its last token.
final class Generation {
    private static final long STREAM = Program.MAIN_STREAM;

    private final Program program;
    private final Network network;
    private final List<Block> weights;
    private final long mostCacheBytes;
    private final long tokenBytes;
    private final long promptTokens;
    private final int longestAnswer;
    private final int rows;

    Generation(Program program) {
        this.program = program;
        network = Network.transformer(program, program.share(0.08, 0.35), program.between(4, 12));
        weights = network.load(program, STREAM);
        mostCacheBytes = program.share(0.1, 0.45) / 2 / network.layers().size();
        tokenBytes = 256L * program.between(1, 8);
        promptTokens = network.samplesPassingIn(program.share(0.01, 0.06));
        longestAnswer = program.between(15, 60);
        rows = program.between(15_000, 45_000);
    }

    void run() {
        while (program.rows() < rows) {
            int sequences = program.between(1, 8);
            network.infer(program, Math.max(1, promptTokens * program.between(1, 8) / 8), STREAM);
            List<Block> caches = fill();
            Block logits = program.allocate(4096L * sequences, STREAM);
            for (int token = program.between(8, longestAnswer); token > 0 && program.rows() < rows; token--) {
                caches = next(caches, sequences);
            }
            program.free(logits);
            program.freeAll(caches);
        }
        program.freeAll(weights);
    }

    /// Allocates the caches of a prompt.
    private List<Block> fill() {
        long byteSize =
                Math.max(tokenBytes, (long) (mostCacheBytes * program.between(0.1, 0.9)) / tokenBytes * tokenBytes);
        List<Block> caches = new ArrayList<>();
        for (int i = 0; i < 2 * network.layers().size(); i++) {
            caches.add(program.allocate(byteSize, STREAM));
        }
        return caches;
    }

    /// Generates one more token for each sequence.
    private List<Block> next(List<Block> caches, int sequences) {
        List<Block> grown = new ArrayList<>();
        for (Block cache : caches) {
            Block hidden = program.allocate(tokenBytes * sequences, STREAM);
            long byteSize = cache.byteSize() + tokenBytes * sequences;
            grown.add(program.allocate(Math.min(byteSize, Math.max(mostCacheBytes, cache.byteSize())), STREAM));
            program.free(cache);
            program.pass(4 * tokenBytes * sequences, STREAM);
            program.free(hidden);
        }
        return grown;
    }
}
