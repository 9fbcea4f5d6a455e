package io.cistern.cli;

import io.cistern.DeviceMemory;

/// Frees a live block chosen at random and allocates one of another size in its place, over and over, through the
/// public raw calls.
final class BenchExchanges implements BenchLoad {
    private final DeviceMemory memory;
    private final int device;
    private final long stream;
    private final BenchSizes sizes;
    private final long[] live;
    private long random = 0x9e3779b97f4a7c15L;

    /// @param liveBlocks how many blocks are alive
    BenchExchanges(DeviceMemory memory, int device, long stream, BenchSizes sizes, int liveBlocks) {
        this.memory = memory;
        this.device = device;
        this.stream = stream;
        this.sizes = sizes;
        live = new long[liveBlocks];
    }

    @Override
    public void begin() {
        for (int i = 0; i < live.length; i++) {
            live[i] = memory.allocate(sizes.next(), device, stream);
        }
    }

    @Override
    public void run(int pairs) {
        for (int i = 0; i < pairs; i++) {
            exchange(choose());
        }
    }

    @Override
    public void time(long[] nanos) {
        for (int i = 0; i < nanos.length; i++) {
            int chosen = choose();
            long begin = System.nanoTime();
            exchange(chosen);
            nanos[i] = System.nanoTime() - begin;
        }
    }

    private void exchange(int chosen) {
        memory.free(live[chosen], stream);
        live[chosen] = memory.allocate(sizes.next(), device, stream);
    }

    /// By xorshift, whose three steps cost a nanosecond; the upper half of the product is even over any length.
    private int choose() {
        random ^= random << 13;
        random ^= random >>> 7;
        random ^= random << 17;
        return (int) Math.unsignedMultiplyHigh(random, live.length);
    }

    @Override
    public void end() {
        for (long block : live) {
            memory.free(block, stream);
        }
    }
}
