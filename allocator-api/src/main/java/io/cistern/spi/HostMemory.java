package io.cistern.spi;

import java.lang.foreign.MemorySegment;

/// Page-locked host memory, for what leaves a device for a while.
///
/// **Threads.** Any thread may call any method at any time.
public interface HostMemory {
    /// Obtains a block of unused memory.
    ///
    /// @param byteSize bytes wanted, above 0
    /// @throws io.cistern.cuda.CudaException if the driver can't pin so much
    HostBlock allocate(long byteSize);

    /// A block of host memory.
    interface HostBlock extends AutoCloseable {
        /// Returns the memory, of the size that was asked for.
        MemorySegment segment();

        /// Gives the memory back. No work uses it any more. Does not throw.
        @Override
        void close();
    }
}
