package io.cistern.benchmarks.thresholds;

import io.cistern.benchmarks.thresholds.StudiedProgram.Block;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.SplittableRandom;

/// A service with permanent weights whose requests arrive after pauses; during a pause nothing
/// calls its allocator.
final class Service {
    private static final long MIB = 1L << 20;
    private static final int REQUESTS = 60;
    private static final long PAUSE_NANOS = 1_500_000_000L;

    private static final int TICKS = 15;

    private final StudiedProgram program;
    private final SplittableRandom random = new SplittableRandom(2);
    private final int parts;
    private final boolean timer;

    private Service(StudiedProgram program, int parts, boolean timer) {
        this.program = program;
        this.parts = parts;
        this.timer = timer;
    }

    /// Requests that each take all of their memory once: 16 blocks, 2 GiB, 40 ms.
    static Workload ofWholeRequests() {
        return Workload.phases("service, whole requests", gpu -> new Service(gpu.program(), 1, false).serve());
    }

    /// Requests in 20 parts; each part takes 2 GiB, frees them and waits.
    static Workload ofRequestsInParts() {
        return Workload.phases("service, requests in parts", gpu -> new Service(gpu.program(), 20, false).serve());
    }

    /// The same with a timer of the program that trims 15 times per pause, which returns memory that is
    /// no longer held.
    static Workload withTimer() {
        return Workload.phases(
                "service, requests in parts, a timer", gpu -> new Service(gpu.program(), 20, true).serve());
    }

    private void serve() {
        Block weights = program.use(1024 * MIB, 1_000_000);
        for (int request = 0; request < REQUESTS; request++) {
            for (int part = 0; part < parts; part++) {
                work(2_500_000 / parts);
            }
            long pauseNanos = (long) (PAUSE_NANOS * (0.5 + random.nextDouble()));
            for (int tick = 0; tick < TICKS; tick++) {
                program.pause(pauseNanos / TICKS);
                if (timer) {
                    program.trim(Long.MAX_VALUE);
                }
            }
        }
        program.free(weights);
        program.synchronize();
    }

    private void work(long kernelNanos) {
        Deque<Block> blocks = new ArrayDeque<>();
        for (int i = 0; i < 16; i++) {
            blocks.add(program.use((100 + random.nextInt(28)) * MIB, kernelNanos));
        }
        program.freeAll(blocks);
        program.synchronize();
    }
}
