package io.cistern.internal.routing;

import io.cistern.AllocatorContractException;
import io.cistern.DeviceOutOfMemoryException;
import io.cistern.UnknownAddressException;
import io.cistern.spi.DeviceAllocator;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The routing kernel: the way of every allocation and every free, for every allocator.
///
/// **Allocate**: charge the bytes to the calling thread's lane → ask the route's allocator → check what it returned → record the
/// owner → count. A failure anywhere undoes what came before it.
///
/// **Free**: take the owner's record away (once: the second free of an address finds none) → give the block to its maker →
/// count. The record goes first, since the address may come back from the allocator at once, on another thread.
///
/// **Cost.** For a platform thread: no lock, no native call, no garbage, one compare-and-set (in free). A virtual thread
/// enters a shared lane around each count, one compare-and-set more.
public final class Router {
    /// Bits that an address must not have: below the alignment of 256 bytes, or beyond the table.
    private static final long ILLEGAL_BITS = -(1L << OwnerTable.ADDRESS_BITS) | 0xFF;

    private final OwnerTable owners = new OwnerTable();
    private final Lanes lanes = new Lanes();
    private volatile Route[] routes = {};

    /// Opens a route.
    ///
    /// @param whenDrained runs once, after [#close] and when no block of the route is left
    public synchronized Route open(
            String name, int device, DeviceAllocator allocator, Budget budget, Runnable whenDrained) {
        Route[] more = Arrays.copyOf(routes, routes.length + 1);
        Route route = new Route(routes.length, device, name, allocator, budget, whenDrained);
        more[route.index] = route;
        routes = more;
        return route;
    }

    /// Refuses further allocations and runs `whenDrained` as soon as no block is left, at once if there is none now.
    public void close(Route route) {
        route.refuse();
        route.expectDraining(owners.drain(route.index));
    }

    /// Allocates through a route.
    ///
    /// @param byteSize 0 gives address 0
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws DeviceOutOfMemoryException if the allocator or a limit says so
    /// @throws AllocatorContractException if the allocator returns what it must not
    public long allocate(Route route, long byteSize, long stream) {
        if (byteSize <= 0) {
            return zero(byteSize);
        }
        Lane lane = lanes.own();
        if (!charge(lane, route, byteSize)) {
            throw OutOfMemory.limit(route, byteSize);
        }
        long address = obtain(lane, route, byteSize, stream);
        if (lane != null) {
            lane.allocated(route, byteSize);
        } else {
            Lane shared = lanes.enterShared();
            shared.allocated(route, byteSize);
            shared.leave();
        }
        return address;
    }

    private long obtain(@Nullable Lane lane, Route route, long byteSize, long stream) {
        try {
            long address = route.entrance().allocate(byteSize, route.device, stream);
            if ((address & ILLEGAL_BITS) == 0 && address != 0 && owners.insert(address, byteSize, stream, route.index)) {
                return address;
            }
            throw illegal(route, address, byteSize, stream);
        } catch (DeviceOutOfMemoryException failure) {
            refund(lane, route, byteSize);
            throw OutOfMemory.explain(route, statistics(route), byteSize, failure);
        } catch (Throwable failure) {
            refund(lane, route, byteSize);
            throw failure;
        }
    }

    /// Frees a block, through whichever route made it.
    ///
    /// @param address 0 does nothing
    /// @param stream the stream of the last use
    /// @throws UnknownAddressException if no live block begins there
    public void free(long address, long stream) {
        if (address != 0 && ((address & ILLEGAL_BITS) != 0 || !owners.remove(address, stream, this))) {
            throw new UnknownAddressException(address);
        }
    }

    void removed(long address, long byteSize, long stream, int index, boolean draining) {
        Route route = routes[index];
        try {
            route.maker().free(address, byteSize, route.device, stream);
        } finally {
            Lane lane = lanes.own();
            if (lane != null) {
                lane.freed(route, byteSize);
            } else {
                Lane shared = lanes.enterShared();
                shared.freed(route, byteSize);
                shared.leave();
            }
            if (draining) {
                route.drainedOne();
            }
        }
    }

    private boolean charge(@Nullable Lane lane, Route route, long byteSize) {
        if (lane != null) {
            return lane.charge(route, byteSize);
        }
        Lane shared = lanes.enterShared();
        try {
            return shared.charge(route, byteSize);
        } finally {
            shared.leave();
        }
    }

    private void refund(@Nullable Lane lane, Route route, long byteSize) {
        if (lane != null) {
            lane.refund(route, byteSize);
        } else {
            Lane shared = lanes.enterShared();
            shared.refund(route, byteSize);
            shared.leave();
        }
    }

    private static long zero(long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize is negative: " + byteSize);
        }
        return 0;
    }

    private static AllocatorContractException illegal(Route route, long address, long byteSize, long stream) {
        boolean wellFormed = address != 0 && (address & ILLEGAL_BITS) == 0;
        if (!wellFormed && address != 0) {
            route.maker().free(address, byteSize, route.device, stream);
        }
        String fault = wellFormed
                ? "where a live block begins already"
                : "which is not a multiple of 256 between 256 and 2^" + OwnerTable.ADDRESS_BITS;
        return new AllocatorContractException("allocator " + route.name() + " returned 0x" + Long.toHexString(address)
                + " for " + byteSize + " bytes on device " + route.device + ", " + fault);
    }

    /// The counters of a route; weakly consistent while other threads allocate, exact at rest.
    public RouteStatistics statistics(Route route) {
        LaneSum sum = lanes.sum(route.index);
        long peak = Math.min(sum.peak, route.meter.peak());
        long requested = sum.allocatedBytes - sum.freedBytes;
        return new RouteStatistics(
                sum.allocations, sum.frees, requested, Math.max(peak, requested), sum.allocatedBytes);
    }
}
