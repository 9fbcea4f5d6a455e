package io.cistern.adaptors;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.UnifiedMemory;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.lang.System.Logger.Level;
import java.util.concurrent.atomic.AtomicBoolean;

/// Moves each block of managed memory to the device that it is allocated for, in the order of its stream, so
/// that the first kernel finds it there. A prefetch is only a hint. The driver refuses it for memory that
/// is not managed, and while the stream is captured. The block is then handed out without a prefetch, and
/// the first refusal is logged.
public final class PrefetchAllocator extends AllocatorAdaptor {
    private final UnifiedMemory unified;
    private final AtomicBoolean refused = new AtomicBoolean();

    /// Builds on an allocator of managed memory.
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
