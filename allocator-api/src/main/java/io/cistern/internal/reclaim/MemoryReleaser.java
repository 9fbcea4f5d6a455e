package io.cistern.internal.reclaim;

/// Frees device memory that a program can spare or put elsewhere.
@FunctionalInterface
public interface MemoryReleaser {
    /// Frees memory for a request.
    ///
    /// @return bytes that were freed
    long free(int device, long byteSize);
}
