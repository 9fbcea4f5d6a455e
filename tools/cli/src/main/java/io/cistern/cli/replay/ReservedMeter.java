package io.cistern.cli.replay;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.MemoryStatistics;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/// Finds the most bytes that the allocators of a replay held of the device together, by the best means they
/// offer:
///
/// 1. [MemoryStatistics#reservedPeakBytes], exact: handles of virtual memory, the pool's own high-water mark;
/// of one
///    allocator alone, since peaks of several do not add up;
/// 2. [io.cistern.Allocator#reservedBytes] of all, looked at after each allocation;
/// 3. what the device had free before, less what it has free after each allocation.
///
/// The last two cost a call for each allocation, so measured passes are not timed.
final class ReservedMeter implements BlockWork {
    private final CudaDriver driver;
    private final int device;
    private final Routing routing;
    private final long freeBytesBefore;
    private final Optional<MemoryStatistics> exact;
    private long peakBytes;

    /// Begins at the present state.
    ///
    /// @param plan whether there will be several allocators
    /// @param freeBytesBefore what the device had free before the allocator was opened
    ReservedMeter(CudaDriver driver, int device, Routing routing, Routing.Plan plan, long freeBytesBefore) {
        this.driver = driver;
        this.device = device;
        this.routing = routing;
        this.freeBytesBefore = freeBytesBefore;
        exact = plan.isPlain()
                ? routing.open()
                        .findFirst()
                        .flatMap(allocator -> allocator.extension(MemoryStatistics.class))
                        .filter(own -> own.reservedPeakBytes(device).isPresent())
                : Optional.empty();
        exact.ifPresent(own -> own.resetPeaks(device));
    }

    @Override
    public void allocated(int row, long address, long byteSize, long stream) {
        if (exact.isEmpty()) {
            peakBytes = Math.max(peakBytes, reservedBytes());
        }
    }

    /// What they hold now.
    long reservedBytes() {
        List<OptionalLong> each =
                routing.open().map(allocator -> allocator.reservedBytes(device)).toList();
        return each.stream().allMatch(OptionalLong::isPresent)
                ? each.stream().mapToLong(OptionalLong::getAsLong).sum()
                : freeBytesBefore - driver.memory().freeBytes(device);
    }

    /// The most bytes held so far.
    long peakBytes() {
        return exact.map(own -> own.reservedPeakBytes(device).orElse(0)).orElse(peakBytes);
    }
}
