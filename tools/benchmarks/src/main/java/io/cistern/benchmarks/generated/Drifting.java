package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// Key-value caches of 48 sequences that grow by copying until their sequence ends; each new sequence starts
/// larger than the one before.
final class Drifting implements Runnable {
    private final Program program;

    Drifting(Program program) {
        this.program = program;
    }

    @Override
    public void run() {
        long mostBytes = program.capacityBytes() / 96;
        List<Block> caches = new ArrayList<>();
        long startBytes = mostBytes / 64;
        for (int i = 0; i < 48; i++) {
            caches.add(program.allocate(program.anyOf(startBytes, mostBytes), 1));
        }
        for (int i = 0; i < 15_000; i++) {
            int chosen = program.choose(caches.size());
            Block former = caches.get(chosen);
            long grown = former.byteSize() + former.byteSize() / 16 + program.anyOf(256, 64 << 10);
            startBytes += startBytes / 4096;
            boolean ends = grown > mostBytes || program.chance(0.02);
            caches.set(chosen, program.allocate(ends ? Math.min(startBytes, mostBytes) : grown, 1));
            program.free(former);
        }
    }
}
