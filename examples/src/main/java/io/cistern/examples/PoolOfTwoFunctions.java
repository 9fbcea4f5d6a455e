package io.cistern.examples;

import io.cistern.Allocators;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.ScopeOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import java.util.concurrent.atomic.AtomicInteger;

/// Makes a pool from two functions: one obtains memory, the other gives it back. The pool caches, splits,
/// counts and limits; it calls the functions only for whole segments.
///
/// Runs on the GPU, or on the simulated one if there is no GPU.
public final class PoolOfTwoFunctions {
    private static final int DEVICE = 0;

    private final CudaDriver driver = DeviceMemory.system().driver();
    private final AtomicInteger segments = new AtomicInteger();

    private PoolOfTwoFunctions() {}

    /// Runs the example.
    public static void main(String[] arguments) {
        new PoolOfTwoFunctions().run();
    }

    private long obtain(long byteSize, int device) {
        try {
            long address = driver.memory().allocate(device, byteSize);
            segments.incrementAndGet();
            return address;
        } catch (CudaException outOfMemory) {
            return 0;
        }
    }

    private void giveBack(long address, long byteSize, int device) {
        driver.memory().free(device, address);
        segments.decrementAndGet();
    }

    private void run() {
        long stream = driver.streams().create(DEVICE);
        MemoryPool pool = MemoryPool.of(this::obtain, this::giveBack);
        long allocations = pool.call(ScopeOptions.all(), () -> {
            for (int i = 0; i < 1000; i++) {
                DeviceBuffer.allocate(4096, DEVICE, stream).close();
            }
            return pool.statistics(DEVICE).allocations();
        });
        System.out.printf("%d allocations from %d segment%n", allocations, segments.get());
        pool.close();
        System.out.printf("closed: %d segments left%n", segments.get());
        Allocators.streamClosing(DEVICE, stream);
        driver.streams().destroy(DEVICE, stream);
    }
}
