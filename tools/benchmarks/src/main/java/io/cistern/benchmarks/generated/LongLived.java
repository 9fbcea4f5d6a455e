package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// Long-lived small and middle-sized blocks, each allocated between large, short-lived ones.
final class LongLived implements Runnable {
    private final Program program;

    LongLived(Program program) {
        this.program = program;
    }

    @Override
    public void run() {
        List<Block> kept = new ArrayList<>();
        List<Block> passing = new ArrayList<>();
        for (int i = 0; i < 12_000; i++) {
            if (program.liveBytes() > 0.7 * program.capacityBytes() || program.chance(0.45)) {
                program.freeOneOf(passing);
            } else {
                passing.add(program.allocate(program.anyOf(1 << 20, program.capacityBytes() / 64), 1));
            }
            if (program.chance(0.3)) {
                kept.add(program.allocate(program.anyOf(256, 2 << 20), 1));
            }
            if (kept.size() > 1_500) {
                program.freeOneOf(kept);
            }
        }
    }
}
