package io.cistern.adaptors;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.UnifiedMemory;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.lang.System.Logger.Level;
import java.util.concurrent.atomic.AtomicBoolean;

/// Prefetches each block of managed memory in stream order to the device that the block is allocated
/// for, so that the first kernel finds it there. A prefetch is only a hint. The driver refuses it for
/// memory that is not managed, and while the stream is being captured. The allocator then returns the
/// block without a prefetch, and logs the first refusal.
public final class PrefetchAllocator extends AllocatorAdaptor {
    private final UnifiedMemory unified;
    private final AtomicBoolean refused = new AtomicBoolean();

    /// Wraps an allocator of managed memory.
    ///
    /// @param unified the facet of the driver in use that prefetches managed memory
    public PrefetchAllocator(DeviceAllocator upstream, UnifiedMemory unified) {
        super(upstream);
        this.unified = unified;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address = upstream().allocate(byteSize, device, stream);
        if (address != 0) {
            prefetch(address, byteSize, device, stream);
        }
        return address;
    }

    private void prefetch(long address, long byteSize, int device, long stream) {
        try {
            unified.prefetch(device, address, byteSize, MemoryLocation.device(device), stream);
        } catch (CudaException refusal) {
            if (!refused.getAndSet(true)) {
                System.getLogger(PrefetchAllocator.class.getName())
                        .log(Level.WARNING, "a block could not be prefetched: {0}", refusal.getMessage());
            }
        }
    }
}
