package io.cistern.cli.replay;

import io.cistern.cli.trace.Trace;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.MemoryStatistics;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/// Finds the most bytes of the device that the allocators of a replay held together, by the best
/// means they offer:
///
/// 1. [MemoryStatistics#reservedPeakBytes], exact: handles of virtual memory, or the pool's own high-water
///    mark. Only for a single allocator, because the peaks of several do not add up.
/// 2. The sum of [io.cistern.Allocator#reservedBytes], read after each allocation.
/// 3. The device's free bytes at the beginning minus its free bytes after each allocation.
///
/// The last two cost a call per allocation, so measured passes are not timed.
final class ReservedMeter implements BlockWork {
    private final CudaDriver driver;
    private final int device;
    private final Routing routing;
    private final long freeBytesBefore;
    private final Optional<MemoryStatistics> exact;
    private long peakBytes;

    /// Starts measuring from the present state.
    ///
    /// @param plan says whether there will be several allocators
    /// @param freeBytesBefore the free bytes of the device before the allocator was opened
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
    public void play(byte op, int row, long address, long byteSize, long stream) {
        if (op == Trace.ALLOCATE && exact.isEmpty()) {
            peakBytes = Math.max(peakBytes, reservedBytes());
        }
    }

    long reservedBytes() {
        List<OptionalLong> each =
                routing.open().map(allocator -> allocator.reservedBytes(device)).toList();
        return each.stream().allMatch(OptionalLong::isPresent)
                ? each.stream().mapToLong(OptionalLong::getAsLong).sum()
                : freeBytesBefore - driver.memory().freeBytes(device);
    }

    long peakBytes() {
        return exact.map(own -> own.reservedPeakBytes(device).orElse(0)).orElse(peakBytes);
    }
}
