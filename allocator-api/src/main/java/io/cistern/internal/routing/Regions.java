package io.cistern.internal.routing;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// The region that each thread is in.
///
/// A platform thread's stands in its lane, where an allocation reads it at no cost; a virtual thread's in a
/// thread-local. Threads that a structured task scope forks find the region of the task in a scoped value, at
/// their first look.
final class Regions {
    static {
        // Loads the class: the compiler inlines no method whose signature names a class that is not loaded
        // yet, and the path of every allocation has such methods, also in programs that never enter a region.
        Objects.requireNonNull(Region.class);
    }

    /// A virtual thread that left the region it inherited: a thread-local without a value can't say so.
    private static final Region OUTSIDE = Region.of(null, new Route[0]);

    private final Lanes lanes;

    @SuppressWarnings("ThreadLocalUsage") // a thread is in one region for each DeviceMemory
    private final ThreadLocal<Region> ofVirtualThread = new ThreadLocal<>();

    private final ScopedValue<Region> inherited = ScopedValue.newInstance();

    /// Whether any virtual thread may be in a region, so that the others need not look.
    private volatile boolean virtualThreadsHaveRegions;

    /// Is told of every move, or null.
    @Nullable
    ScopeWatch watch;

    Regions(Lanes lanes) {
        this.lanes = lanes;
    }

    /// The calling thread's region, or null.
    @Nullable
    Region current() {
        Lane lane = lanes.own();
        return lane != null ? lane.region : ofVirtualThread();
    }

    @Nullable
    Region ofVirtualThread() {
        if (!virtualThreadsHaveRegions) {
            return null;
        }
        Region region = ofVirtualThread.get();
        if (region == null) {
            return inherited();
        }
        return region != OUTSIDE ? region : null;
    }

    @Nullable
    Region inherited() {
        return inherited.isBound() ? inherited.get() : null;
    }

    /// Puts the calling thread into a region.
    void set(@Nullable Region region) {
        if (watch != null) {
            watch.moved(region);
        }
        Lane lane = lanes.own();
        if (lane != null) {
            lane.region = region;
        } else {
            virtualThreadsHaveRegions = true;
            setOfVirtualThread(region);
        }
    }

    private void setOfVirtualThread(@Nullable Region region) {
        if (region != null) {
            ofVirtualThread.set(region);
        } else if (inherited.isBound()) {
            ofVirtualThread.set(OUTSIDE);
        } else {
            ofVirtualThread.remove();
        }
    }

    /// Runs code in a region, and threads that it forks in a structured task scope too.
    <R, X extends Throwable> R call(Region region, ScopedValue.CallableOp<R, X> body) throws X {
        virtualThreadsHaveRegions = true;
        Region before = current();
        set(region);
        try {
            return ScopedValue.where(inherited, region).call(body);
        } finally {
            set(before);
        }
    }
}
