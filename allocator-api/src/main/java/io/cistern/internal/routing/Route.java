package io.cistern.internal.routing;

import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// One allocator on one device: where a block came from, and where it goes back.
public final class Route {
    final int index;
    final int device;
    final String name;
    final DeviceAllocator maker;
    final @Nullable Budget budget;
    final Meter meter = new Meter();
    private final Runnable whenDrained;

    /// Where allocations go: the maker, or null after closing. Frees always go to the maker.
    volatile @Nullable DeviceAllocator entrance;

    /// Blocks that were alive when the route closed and still are; below zero while the closing thread is still
    /// counting.
    private final AtomicLong draining = new AtomicLong();

    Route(int index, int device, String name, DeviceAllocator maker, @Nullable Budget budget, Runnable whenDrained) {
        this.index = index;
        this.device = device;
        this.name = name;
        this.maker = maker;
        this.entrance = maker;
        this.budget = budget;
        this.whenDrained = whenDrained;
    }

    /// Refuses allocations from now on.
    void refuse() {
        entrance = null;
    }

    /// How many of the marked blocks are still alive, once `marked` are.
    long draining(long marked) {
        return marked + draining.get();
    }

    void expectDraining(long blocks) {
        if (draining.addAndGet(blocks) == 0) {
            whenDrained.run();
        }
    }

    /// Counts the free of a marked block, and tells whether it was the last.
    boolean drainedOne() {
        return draining.decrementAndGet() == 0;
    }

    void drained() {
        whenDrained.run();
    }

    /// The allocator's spec.
    @Override
    public String toString() {
        return name;
    }
}
