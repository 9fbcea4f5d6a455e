package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// A language model server. Requests arrive at a rate that rises and falls, and many run at once. Each takes a
/// pass over its prompt and then a block of keys and values for every few tokens, until its answer is complete.
/// Buffers of each step are proportional to the number of requests.
final class Serving {
    private static final long STREAM = Program.MAIN_STREAM;

    /// A request that is being answered.
    private record Request(List<Block> cache, int lastLength) {}

    private final Program program;
    private final Network network;
    private final List<Block> weights;
    private final List<Request> requests = new ArrayList<>();
    private final long cacheBlockBytes;
    private final long mostCacheBlocks;
    private final long promptTokens;
    private final int longest;
    private final int rows;
    private long cacheBlocks;

    Serving(Program program) {
        this.program = program;
        network = Network.transformer(program, program.share(0.1, 0.4), program.between(4, 10));
        weights = network.load(program, STREAM);
        mostCacheBlocks = program.between(300, 2_500);
        cacheBlockBytes = program.share(0.15, 0.4) / mostCacheBlocks;
        promptTokens = network.samplesPassingIn(program.share(0.01, 0.08));
        longest = program.between(8, 60);
        rows = program.between(20_000, 50_000);
    }

    void run() {
        int day = program.between(50, 400);
        for (int step = 0; program.rows() < rows; step++) {
            double load = 0.5 + 0.5 * Math.sin(2 * Math.PI * step / day);
            if (program.chance(load) && cacheBlocks + 2L * longest < mostCacheBlocks) {
                admit();
            }
            decode();
        }
        requests.forEach(this::forget);
        program.freeAll(weights);
    }

    private void admit() {
        int lastLength = program.between(2, longest);
        Request request = new Request(new ArrayList<>(), lastLength);
        int prompt = program.between(1, lastLength);
        network.infer(program, Math.max(1, promptTokens * prompt / longest), STREAM);
        for (int i = 0; i < prompt; i++) {
            grow(request);
        }
        requests.add(request);
    }

    private void grow(Request request) {
        request.cache().add(program.allocate(cacheBlockBytes, STREAM));
        cacheBlocks++;
    }

    private void decode() {
        Block hidden = program.allocate(4096L * (1 + requests.size()), STREAM);
        for (Request request : requests) {
            if (program.chance(0.25) && cacheBlocks < mostCacheBlocks) {
                grow(request);
            }
        }
        program.pass(16_384L * (1 + requests.size()), STREAM);
        program.free(hidden);
        List<Request> answered = requests.stream()
                .filter(request -> request.cache().size() > request.lastLength())
                .toList();
        answered.forEach(this::forget);
        requests.removeAll(answered);
    }

    private void forget(Request request) {
        cacheBlocks -= request.cache().size();
        program.freeAll(request.cache());
    }
}
