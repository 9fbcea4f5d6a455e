package io.cistern.cli;

import io.cistern.Allocator;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.ReservedPeak;
import java.util.Optional;

/// Finds the most bytes that an allocator held of the device, by the best means it offers:
///
/// 1. [ReservedPeak], exact: handles of virtual memory, the pool's own high-water mark;
/// 2. [Allocator#reservedBytes], looked at after each allocation;
/// 3. what the device had free before, less what it has free after each allocation.
///
/// The last two cost a call for each allocation, so measured passes are not timed.
final class ReservedMeter implements BlockWork {
    private final CudaDriver driver;
    private final int device;
    private final Allocator allocator;
    private final long freeBytesBefore;
    private final Optional<ReservedPeak> exact;
    private long peakBytes;

    /// Begins at the present state.
    ///
    /// @param freeBytesBefore what the device had free before the allocator was opened
    ReservedMeter(CudaDriver driver, int device, Allocator allocator, long freeBytesBefore) {
        this.driver = driver;
        this.device = device;
        this.allocator = allocator;
        this.freeBytesBefore = freeBytesBefore;
        exact = allocator.extension(ReservedPeak.class);
        exact.ifPresent(peak -> peak.resetReservedPeak(device));
    }

    @Override
    public void allocated(int row, long address, long byteSize, long stream) {
        if (exact.isEmpty()) {
            long reserved = allocator
                    .reservedBytes(device)
                    .orElseGet(() -> freeBytesBefore - driver.memory().freeBytes(device));
            peakBytes = Math.max(peakBytes, reserved);
        }
    }

    /// The most bytes held so far.
    long peakBytes() {
        return exact.map(peak -> peak.reservedPeakBytes(device)).orElse(peakBytes);
    }
}
