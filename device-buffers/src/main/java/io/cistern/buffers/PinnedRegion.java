package io.cistern.buffers;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.settings.ByteSizes;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/// Host memory of the program that stays pinned until the region is closed, so that the host need not
/// wait for copies to and from it. [PinnedMemory#register] creates a region.
///
/// **Threads.** Any thread may call any method at any time.
public final class PinnedRegion implements AutoCloseable {
    /// Any device: registered memory is pinned for all.
    private static final int DEVICE = 0;

    private final CudaDriver driver;
    private final MemorySegment memory;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// Pins the memory.
    PinnedRegion(CudaDriver driver, MemorySegment memory) {
        this.driver = driver;
        this.memory = memory;
        driver.memory().registerHost(DEVICE, memory);
    }

    /// Returns the pinned memory.
    public MemorySegment segment() {
        return memory;
    }

    /// Unpins the memory, but does not free it. Before the call, wait for the copies that use the
    /// memory. Closing twice does nothing.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses; another close tries again
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            boolean done = false;
            try {
                DeadContext.survive(() -> driver.memory().unregisterHost(DEVICE, memory));
                done = true;
            } finally {
                closed.set(done);
            }
        }
    }

    /// Returns address and size.
    @Override
    public String toString() {
        return "PinnedRegion[" + ByteSizes.count(memory.byteSize()) + " at 0x" + Long.toHexString(memory.address())
                + "]";
    }
}
