package io.cistern.spi;

import java.lang.foreign.MemorySegment;

/// Allocates pinned host memory, for contents that leave a device for a while.
///
/// **Threads.** Any thread may call any method at any time.
public interface HostMemory {
    /// Allocates a block.
    ///
    /// @param byteSize the requested bytes, at least 1
    /// @throws io.cistern.cuda.CudaException if the driver can't pin that many bytes
    HostBlock allocate(long byteSize);

    /// A block of host memory.
    interface HostBlock extends AutoCloseable {
        /// Returns the memory, which has the requested size.
        MemorySegment segment();

        /// Frees the block. The caller ensures that no work uses the block any more. Does not throw.
        @Override
        void close();
    }
}
