package io.cistern;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.spi.HostMemory;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;

/// Allocates host memory that the driver pins anew for each block, for programs without a cache of pinned
/// memory.
///
/// **Threads.** Any.
record DriverHostMemory(CudaDriver driver) implements HostMemory {
    /// Pins the block in the context of a device that is in use already, so that no other device gets a context
    /// for it. All devices reach the block.
    @Override
    public HostBlock allocate(long byteSize) {
        int device = 0;
        while (device < driver.devices().count() && !driver.devices().isUsed(device)) {
            device++;
        }
        int used = device < driver.devices().count() ? device : 0;
        return new Block(driver, used, driver.memory().allocateHost(used, byteSize));
    }

    private record Block(CudaDriver driver, int device, MemorySegment segment) implements HostBlock {
        @Override
        public void close() {
            CudaException refusal = DeadContext.refusal(() -> driver.memory().freeHost(device, segment));
            if (refusal != null) {
                System.getLogger(DriverHostMemory.class.getName())
                        .log(Level.WARNING, "the driver does not unpin " + segment, refusal);
            }
        }
    }
}
