package io.cistern.adaptors;

import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A region of a [StatisticsAllocator]. The thread that entered the region stays in it until it closes the
/// region.
public final class StatisticsRegion implements AutoCloseable {
    private final StatisticsAllocator allocator;
    private final String name;
    private final RegionCounts counts;
    private final @Nullable StatisticsRegion outer;
    private final boolean repeated;

    StatisticsRegion(
            StatisticsAllocator allocator, String name, RegionCounts counts, @Nullable StatisticsRegion outer) {
        this.allocator = allocator;
        this.name = name;
        this.counts = counts;
        this.outer = outer;
        this.repeated = isAround(name, outer);
    }

    private static boolean isAround(String name, @Nullable StatisticsRegion region) {
        return region != null && (region.name.equals(name) || isAround(name, region.outer));
    }

    /// Applies a change to the counts of this region and of its outer regions, once for each name.
    void forEach(Consumer<RegionCounts> change) {
        for (StatisticsRegion region = this; region != null; region = region.outer) {
            if (!region.repeated) {
                change.accept(region.counts);
            }
        }
    }

    /// Leaves the region. A second call throws.
    ///
    /// @throws IllegalStateException if this is not the innermost region of the calling thread
    @Override
    public void close() {
        if (outer != null) {
            allocator.leave(this, outer);
        }
    }

    /// Returns the name.
    @Override
    public String toString() {
        return name;
    }
}
