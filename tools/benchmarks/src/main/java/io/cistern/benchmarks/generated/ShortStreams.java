package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// A thousand streams, three at a time; each has its own working set, which it frees when it ends.
final class ShortStreams implements Runnable {
    private final Program program;

    ShortStreams(Program program) {
        this.program = program;
    }

    @Override
    public void run() {
        List<Block> former = List.of();
        for (int stream = 1; stream <= 1_000; stream++) {
            List<Block> own = new ArrayList<>();
            long wantedBytes = program.capacityBytes() / 64;
            for (long bytes = 0; bytes < wantedBytes; bytes += own.getLast().byteSize()) {
                own.add(program.allocate(program.anyOf(512, wantedBytes / 4), stream));
                if (program.chance(0.3)) {
                    program.freeOneOf(own);
                    own.add(program.allocate(program.anyOf(512, 1 << 20), stream));
                }
            }
            program.end(former);
            former = own;
        }
        program.end(former);
    }
}
