package io.cistern.simulated;

import io.cistern.cuda.CudaResult;

/// The physical memory of a device. Invariant: `0 ≤ used ≤ total`.
final class MemoryBudget {
    private final long totalBytes;
    private long usedBytes;

    MemoryBudget(long totalBytes, long contextBytes) {
        this.totalBytes = totalBytes;
        this.usedBytes = contextBytes;
    }

    long totalBytes() {
        return totalBytes;
    }

    long freeBytes() {
        return totalBytes - usedBytes;
    }

    void take(long byteSize) {
        if (byteSize > freeBytes()) {
            throw new DriverFailure(CudaResult.OUT_OF_MEMORY);
        }
        usedBytes += byteSize;
    }

    void give(long byteSize) {
        usedBytes -= byteSize;
    }
}
