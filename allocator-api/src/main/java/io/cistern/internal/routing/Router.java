package io.cistern.internal.routing;

import io.cistern.AllocatorContractException;
import io.cistern.DeviceOutOfMemoryException;
import io.cistern.UnknownAddressException;
import io.cistern.spi.DeviceAllocator;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The routing kernel: the way of every allocation and every free, for every allocator.
///
/// **Allocate**: take the bytes from the limit, if there is one → ask the route's allocator → check what it returned and record
/// the owner → count in the calling thread's lane. A failure undoes what came before it.
///
/// **Free**: take the owner's record away (once: the second free of an address finds none) → give the block to its maker →
/// count. The record goes first, since the address may come back from the allocator at once, on another thread.
///
/// **Cost.** For a platform thread: no lock, no native call, no garbage, one compare-and-set (in free). A virtual thread
/// enters a shared lane to count, one compare-and-set more.
public final class Router extends OwnerTable {
    /// Bits that an address must not have: below the alignment of 256 bytes, or beyond the table.
    private static final long ILLEGAL_BITS = -(1L << ADDRESS_BITS) | 0xFF;

    private final Lanes lanes = new Lanes();

    /// By index. A thread that frees a block came after the one that allocated it, which saw the route.
    private Route[] routes = {};

    /// Opens a route.
    ///
    /// @param budget the device's limit, or null
    /// @param whenDrained runs once, after [#close] and when no block of the route is left
    public synchronized Route open(
            String name, int device, DeviceAllocator allocator, @Nullable Budget budget, Runnable whenDrained) {
        if (routes.length == MAX_ROUTES) {
            throw new IllegalStateException("more than " + MAX_ROUTES + " allocators opened in one DeviceMemory");
        }
        Route[] more = Arrays.copyOf(routes, routes.length + 1);
        Route route = new Route(routes.length, device, name, allocator, budget, whenDrained);
        more[route.index] = route;
        routes = more;
        return route;
    }

    /// Refuses further allocations and runs `whenDrained` as soon as no block is left, at once if there is none now.
    public void close(Route route) {
        route.refuse();
        route.expectDraining(drain(route.index));
    }

    /// Allocates through a route.
    ///
    /// @param byteSize 0 gives address 0
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws DeviceOutOfMemoryException if the allocator or a limit says so
    /// @throws AllocatorContractException if the allocator returns what it must not
    public long allocate(Route route, long byteSize, long stream) {
        DeviceAllocator entrance = route.entrance;
        if (((byteSize - 1) >>> SIZE_BITS) != 0) {
            return zeroOrTooLarge(route, byteSize);
        }
        if (route.budget != null) {
            takeFromBudget(route, byteSize);
        }
        long address;
        try {
            address = entrance.allocate(byteSize, route.device, stream);
        } catch (Throwable failure) {
            throw failed(route, byteSize, failure);
        }
        if (address == 0 || (address & ILLEGAL_BITS) != 0 || !insert(address, byteSize, route.index)) {
            throw illegal(route, address, byteSize, stream);
        }
        Lane lane = lanes.own();
        if (lane != null) {
            lane.of(route).allocated(byteSize);
        } else {
            countSharedAllocation(route, byteSize);
        }
        return address;
    }

    /// Frees a block, through whichever route made it.
    ///
    /// @param address 0 does nothing
    /// @param stream the stream of the last use
    /// @throws UnknownAddressException if no live block begins there
    public void free(long address, long stream) {
        if (address != 0 && ((address & ILLEGAL_BITS) != 0 || !remove(address, stream))) {
            throw new UnknownAddressException(address);
        }
    }

    /// Frees the block of a record that was found.
    ///
    /// The compare-and-set in `take` holds up all reads after it. So what the rest needs is read before, from an owner that may
    /// change until then if the program frees twice; when it did, the slow way looks again.
    ///
    /// @return false if there is no live record
    @Override
    boolean free(long[] chunk, int at, long address, long stream) {
        long owner = ownerIn(chunk, at);
        Route route = routes[routeOf(owner)];
        Lane lane = lanes.own();
        if (lane == null || route.budget != null) {
            return freeSlowly(chunk, at, address, stream, take(chunk, at, address));
        }
        Tally tally = lane.of(route);
        long taken = take(chunk, at, address);
        if (taken != owner) {
            return freeSlowly(chunk, at, address, stream, taken);
        }
        try {
            route.maker.free(address, byteSizeOf(owner), route.device, stream);
        } finally {
            tally.freed(byteSizeOf(owner));
        }
        return true;
    }

    /// The way of virtual threads, limits, closing routes and lost races.
    private boolean freeSlowly(long[] chunk, int at, long address, long stream, long taken) {
        boolean draining = taken == NONE;
        long owner = draining ? takeDraining(chunk, at, address) : taken;
        if (owner == NONE) {
            return false;
        }
        Route route = routes[routeOf(owner)];
        try {
            route.maker.free(address, byteSizeOf(owner), route.device, stream);
        } finally {
            countFree(route, byteSizeOf(owner));
            if (draining) {
                route.drainedOne();
            }
        }
        return true;
    }

    private static void takeFromBudget(Route route, long byteSize) {
        if (route.budget != null && !route.budget.tryTake(byteSize)) {
            throw OutOfMemory.limit(route, byteSize);
        }
    }

    private static void giveBackToBudget(Route route, long byteSize) {
        if (route.budget != null) {
            route.budget.giveBack(byteSize);
        }
    }

    private void countSharedAllocation(Route route, long byteSize) {
        Lane shared = lanes.enterShared();
        shared.of(route).allocated(byteSize);
        shared.leave();
    }

    private void countFree(Route route, long byteSize) {
        Lane own = lanes.own();
        Lane lane = own != null ? own : lanes.enterShared();
        lane.of(route).freed(byteSize);
        if (own == null) {
            lane.leave();
        }
        giveBackToBudget(route, byteSize);
    }

    private static long zeroOrTooLarge(Route route, long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize is negative: " + byteSize);
        }
        if (byteSize > 0) {
            throw new DeviceOutOfMemoryException(byteSize, route.device, "more than a device can address");
        }
        return 0;
    }

    /// Undoes an allocation that the allocator refused, and throws in a way that the compiler lets through.
    private <T extends Throwable> RuntimeException failed(Route route, long byteSize, Throwable failure) throws T {
        giveBackToBudget(route, byteSize);
        if (failure instanceof DeviceOutOfMemoryException told) {
            return OutOfMemory.explain(route, statistics(route), byteSize, told);
        }
        @SuppressWarnings("unchecked")
        T asItIs = (T) failure;
        throw asItIs;
    }

    private static AllocatorContractException illegal(Route route, long address, long byteSize, long stream) {
        giveBackToBudget(route, byteSize);
        boolean wellFormed = address != 0 && (address & ILLEGAL_BITS) == 0;
        if (!wellFormed && address != 0) {
            route.maker.free(address, byteSize, route.device, stream);
        }
        String fault = wellFormed
                ? "where a live block begins already"
                : "which is not a multiple of 256 between 256 and 2^" + ADDRESS_BITS;
        return new AllocatorContractException("allocator " + route.name + " returned 0x" + Long.toHexString(address)
                + " for " + byteSize + " bytes on device " + route.device + ", " + fault);
    }

    /// The counters of a route; weakly consistent while other threads allocate, exact at rest.
    public RouteStatistics statistics(Route route) {
        TallySum sum = lanes.sum(route.index);
        long requested = Math.max(0, route.meter.leased() - sum.credit);
        long peak = Math.max(requested, Math.max(sum.peak, route.meter.peak()));
        return new RouteStatistics(sum.allocations, sum.frees, requested, peak, sum.totalBytes);
    }
}
