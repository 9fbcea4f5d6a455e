package io.cistern.cli.top;

import io.cistern.DeviceMemory;
import io.cistern.cli.common.Plugins;
import io.cistern.observability.jmx.MemoryBeans;
import io.cistern.simulated.SimulatedGpu;
import java.io.IOException;

/// A program that `cistern top` looks at: two simulated GPUs, a bean of its device memory, three blocks that
/// stay on the second one, and pairs that come and go there until its input ends.
final class TopTarget {
    static final long BLOCK_BYTES = 1 << 20;
    static final int BLOCKS = 3;
    private static final long PAUSE_MILLIS = 2;

    private TopTarget() {}

    /// @param arguments `bare` for a program without the bean
    public static void main(String[] arguments) throws Exception {
        try (SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            memory.setCurrent("caching");
            for (int block = 0; block < BLOCKS; block++) {
                memory.allocate(BLOCK_BYTES, 1, 0);
            }
            if (arguments.length == 0) {
                MemoryBeans.register(memory, "trainer");
            }
            Thread pairs = Thread.ofPlatform().daemon().start(() -> pairs(memory));
            System.out.println("ready");
            waitForTheEnd();
            pairs.interrupt();
            pairs.join();
        }
    }

    private static void waitForTheEnd() throws IOException {
        while (System.in.read() >= 0) {
            // Nobody writes.
        }
    }

    private static void pairs(DeviceMemory memory) {
        try {
            while (true) {
                memory.free(memory.allocate(BLOCK_BYTES, 1, 0), 0);
                Thread.sleep(PAUSE_MILLIS);
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
