package io.cistern.adaptors;

import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/// Counts by region: parts of a program that it names itself.
///
/// ```java
/// try (var region = statistics.enter("forward")) {
///     …                                      // allocations of this thread count for "forward", wherever they end
/// }
/// statistics.statistics("forward").requestedPeakBytes()
/// ```
///
/// A region is a thread's own, nests, and counts by its name: what happens in an inner region counts for the outer
/// ones too, once for each name; everything counts for the region `""`. A block belongs to the regions in which it
/// was allocated.
///
/// **Invariant.** The map of blocks holds exactly the live ones.
public final class StatisticsAllocator extends AllocatorAdaptor {
    private final ConcurrentMap<String, RegionCounts> counts = new ConcurrentHashMap<>();
    private final ConcurrentMap<Long, StatisticsRegion> regions = new ConcurrentHashMap<>();
    private final StatisticsRegion everything = new StatisticsRegion(this, "", counts(""), null);
    private final ThreadLocal<StatisticsRegion> innermost = ThreadLocal.withInitial(() -> everything);

    /// Begins to count.
    public StatisticsAllocator(DeviceAllocator upstream) {
        super(upstream);
    }

    /// Enters a region on the calling thread.
    ///
    /// @param name any name
    public StatisticsRegion enter(String name) {
        StatisticsRegion region = new StatisticsRegion(this, name, counts(name), innermost.get());
        innermost.set(region);
        return region;
    }

    /// Ends the innermost region of the calling thread, and nothing else.
    void leave(StatisticsRegion region, StatisticsRegion outer) {
        if (innermost.get() != region) {
            throw new IllegalStateException("region '" + region + "' is not the innermost of this thread");
        }
        innermost.set(outer);
    }

    private RegionCounts counts(String name) {
        return counts.computeIfAbsent(name, _ -> new RegionCounts());
    }

    /// What was counted for the regions of a name, on all devices and threads; zeros for a name never entered.
    public RegionStatistics statistics(String name) {
        return counts.getOrDefault(name, new RegionCounts()).statistics();
    }

    /// What was counted, by name.
    public Map<String, RegionStatistics> statistics() {
        Map<String, RegionStatistics> all = new TreeMap<>();
        counts.forEach((name, counted) -> all.put(name, counted.statistics()));
        return all;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        StatisticsRegion region = innermost.get();
        long address;
        try {
            address = upstream().allocate(byteSize, device, stream);
        } catch (Throwable failure) {
            region.forEach(RegionCounts::failed);
            throw failure;
        }
        region.forEach(counted -> counted.allocated(byteSize));
        regions.put(address, region);
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        StatisticsRegion region = regions.remove(address);
        if (region != null) {
            region.forEach(counted -> counted.freed(byteSize));
        }
        upstream().free(address, byteSize, device, stream);
    }
}
