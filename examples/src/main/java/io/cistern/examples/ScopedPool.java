package io.cistern.examples;

import io.cistern.Allocators;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.buffers.DeviceBuffer;

/// Allocates the memory of a region of code from its own pool; a buffer that outlives the region stays valid.
///
/// Runs on the GPU, or on the simulated one if there is no GPU.
public final class ScopedPool {
    private static final int DEVICE = 0;
    private static final long BYTES = 1 << 20;

    private ScopedPool() {}

    /// Runs the example.
    public static void main(String[] arguments) {
        long stream = DeviceMemory.system().driver().streams().create(DEVICE);
        MemoryPool pool = MemoryPool.builder(DeviceMemory.system())
                .spec("linear") // or caching, pages, vmm, …
                .tag("weights")
                .limitBytes(64 << 20)
                .open();
        DeviceBuffer kept;
        try (Scope _ = pool.enter();
                DeviceBuffer _ = DeviceBuffer.allocate(BYTES, DEVICE, stream)) {
            kept = DeviceBuffer.allocate(BYTES, DEVICE, stream);
            System.out.printf("in the scope: %d blocks from the pool%n", pool.liveBlockCount());
        }
        try (DeviceBuffer _ = DeviceBuffer.allocate(BYTES, DEVICE, stream)) {
            System.out.printf(
                    "after it: %d from the pool, %d from %s%n",
                    pool.liveBlockCount(),
                    Allocators.current().statistics(DEVICE).liveBlocks(),
                    Allocators.current().name());
        }
        pool.close();
        System.out.printf("closed, with %d block alive%n", pool.liveBlockCount());
        kept.close();
        System.out.printf("drained: %s%n", pool.isDrained());
        Allocators.streamClosing(DEVICE, stream);
        DeviceMemory.system().driver().streams().destroy(DEVICE, stream);
    }
}
