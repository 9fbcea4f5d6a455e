package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.List;

/// Fills 95 percent of the device and frees almost everything again, with other sizes each time.
final class Sawtooth implements Runnable {
    private final Program program;

    Sawtooth(Program program) {
        this.program = program;
    }

    @Override
    public void run() {
        long fullBytes = (long) (0.95 * program.capacityBytes());
        List<Block> live = new ArrayList<>();
        for (int tooth = 0; tooth < 8; tooth++) {
            long leastBytes = 4L << 10 << tooth;
            long room = fullBytes - program.liveBytes();
            while (room >= leastBytes) {
                long byteSize = program.anyOf(leastBytes, program.capacityBytes() / 128);
                live.add(program.allocate(Math.min(room, byteSize), 1));
                room = fullBytes - program.liveBytes();
            }
            while (program.liveBytes() > program.capacityBytes() / 50) {
                program.freeOneOf(live);
            }
        }
    }
}
