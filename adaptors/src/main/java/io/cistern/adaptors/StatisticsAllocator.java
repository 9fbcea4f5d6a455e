package io.cistern.adaptors;

import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/// Counts allocations by region, a named part of the program.
///
/// ```java
/// try (var region = statistics.enter("forward")) {
///     …                        // this thread's allocations count for "forward", wherever they are freed
/// }
/// statistics.statistics("forward").requestedPeakBytes()
/// ```
///
/// A region belongs to the thread that entered it. Regions of the same name share their counts, and regions
/// nest: an allocation in an inner region counts for the outer ones, too, once for each name. All
/// allocations count for the region `""`. The free of a block counts for the regions in which the block was
/// allocated.
public final class StatisticsAllocator extends AllocatorAdaptor {
    private final ConcurrentMap<String, RegionCounts> counts = new ConcurrentHashMap<>();

    /// Exactly the live blocks.
    private final ConcurrentMap<Long, StatisticsRegion> regions = new ConcurrentHashMap<>();
    private final StatisticsRegion everything = new StatisticsRegion(this, "", counts(""), null);

    /// Empty outside all regions: a value refers to this object, and would keep it reachable until the
    /// thread ends.
    @SuppressWarnings("ThreadLocalUsage") // a thread may be in regions of several allocators
    private final ThreadLocal<@Nullable StatisticsRegion> innermost = new ThreadLocal<>();

    /// Wraps an allocator, and starts counting.
    public StatisticsAllocator(DeviceAllocator upstream) {
        super(upstream);
    }

    /// Enters a region on the calling thread.
    ///
    /// @param name any name; regions of one name share their counts
    /// @return the region; close it on the same thread to leave it
    public StatisticsRegion enter(String name) {
        StatisticsRegion region = new StatisticsRegion(this, name, counts(name), innermost());
        innermost.set(region);
        return region;
    }

    /// Leaves the innermost region of the calling thread; any other region is an error.
    void leave(StatisticsRegion region, StatisticsRegion outer) {
        if (innermost.get() != region) {
            throw new IllegalStateException(
                    "region '" + region + "' is not the innermost of this thread: leave the inner ones first");
        }
        if (outer == everything) {
            innermost.remove();
        } else {
            innermost.set(outer);
        }
    }

    private StatisticsRegion innermost() {
        StatisticsRegion region = innermost.get();
        return region != null ? region : everything;
    }

    private RegionCounts counts(String name) {
        return counts.computeIfAbsent(name, _ -> new RegionCounts());
    }

    /// Returns the statistics of all regions of a name, over all devices and threads; zeros for a
    /// name never entered.
    public RegionStatistics statistics(String name) {
        return counts.getOrDefault(name, new RegionCounts()).statistics();
    }

    /// Returns all statistics, by name.
    public Map<String, RegionStatistics> statistics() {
        Map<String, RegionStatistics> all = new TreeMap<>();
        counts.forEach((name, counted) -> all.put(name, counted.statistics()));
        return all;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        StatisticsRegion region = innermost();
        long address;
        try {
            address = upstream().allocate(byteSize, device, stream);
        } catch (Throwable failure) {
            region.forEach(RegionCounts::failed);
            throw failure;
        }
        try {
            regions.put(address, region);
        } catch (Throwable full) {
            upstream().free(address, byteSize, device, stream);
            throw full;
        }
        region.forEach(counted -> counted.allocated(byteSize));
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
