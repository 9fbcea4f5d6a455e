package io.cistern.cuda.ffm;

import java.lang.foreign.MemorySegment;

/// Checks host memory that is passed to the driver.
final class HostMemory {
    private HostMemory() {}

    /// Returns the address of native memory that is alive and long enough.
    ///
    /// @throws IllegalArgumentException if it is on the heap or too short
    /// @throws IllegalStateException if its arena was closed
    static long address(MemorySegment memory, long byteSize) {
        if (!memory.isNative()) {
            throw new IllegalArgumentException("the GPU can't reach memory on the heap: " + memory);
        }
        if (!memory.scope().isAlive()) {
            throw new IllegalStateException("host memory of a closed arena: " + memory);
        }
        if (byteSize < 0 || byteSize > memory.byteSize()) {
            throw new IllegalArgumentException(
                    "byteSize=" + byteSize + ", but the host memory has " + memory.byteSize() + " bytes");
        }
        return memory.address();
    }
}
