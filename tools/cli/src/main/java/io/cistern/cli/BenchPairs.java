package io.cistern.cli;

import io.cistern.DeviceMemory;

/// Allocates a block and frees it, over and over, through the public raw calls; other blocks of the thread's may be
/// alive beside it.
final class BenchPairs implements BenchLoad {
    private final DeviceMemory memory;
    private final int device;
    private final long stream;
    private final BenchSizes sizes;
    private final long[] others;

    /// @param liveBlocks how many other blocks are alive
    BenchPairs(DeviceMemory memory, int device, long stream, BenchSizes sizes, int liveBlocks) {
        this.memory = memory;
        this.device = device;
        this.stream = stream;
        this.sizes = sizes;
        others = new long[liveBlocks];
    }

    @Override
    public void begin() {
        for (int i = 0; i < others.length; i++) {
            others[i] = memory.allocate(sizes.next(), device, stream);
        }
    }

    @Override
    public void run(int pairs) {
        for (int i = 0; i < pairs; i++) {
            memory.free(memory.allocate(sizes.next(), device, stream), stream);
        }
    }

    @Override
    public void time(long[] nanos) {
        for (int i = 0; i < nanos.length; i++) {
            long begin = System.nanoTime();
            memory.free(memory.allocate(sizes.next(), device, stream), stream);
            nanos[i] = System.nanoTime() - begin;
        }
    }

    @Override
    public void end() {
        for (long other : others) {
            memory.free(other, stream);
        }
    }
}
