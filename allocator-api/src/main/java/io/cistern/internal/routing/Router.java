package io.cistern.internal.routing;

import io.cistern.AllocatorContractException;
import io.cistern.DeviceOutOfMemoryException;
import io.cistern.UnknownAddressException;
import io.cistern.UnusableStreamException;
import io.cistern.cuda.Streams;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.Lends;
import java.util.ArrayDeque;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The routing kernel: the way of every allocation and every free, for every allocator.
///
/// **Allocate**: take the bytes from the limits, if there are any → ask the route's allocator → check what it
/// returned and record the owner → count in the calling thread's lane. A failure undoes what came before it.
///
/// **Free**: take the owner's record away (once: the second free of an address finds none) → give the block to
/// its maker → count. The record goes first, since the address may come back from the allocator at once, on
/// another thread.
///
/// **Cost.** For a platform thread: no lock, no native call, no garbage, one compare-and-set (in free). A
/// virtual thread enters a shared lane to count, one compare-and-set more.
public final class Router extends OwnerTable {
    /// Addresses below 2^49 that are multiples of 256, without 0.
    private static final long LEGAL_ADDRESSES = (1L << (ADDRESS_BITS - 8)) - 1;

    /// Whether an address is a multiple of 256, not 0, and below the table's end, in one comparison: rotated,
    /// low bits that are set become high ones.
    private static boolean isLegal(long address) {
        return Long.compareUnsigned(Long.rotateRight(address, 8) - 1, LEGAL_ADDRESSES) < 0;
    }

    private static void refuseUnlessZero(long address) {
        if (address != 0) {
            throw new UnknownAddressException(address);
        }
    }

    /// What [#allocate] returns when the route is closed; no address has its low bits.
    public static final long REFUSED = -1;

    /// An index rests until so many others have come after it. So whoever frees a block twice, and looks at its
    /// record while it is freed and its route drains, does not meet the next route of that index.
    private static final int RESTING = 1024;

    private final Lanes lanes = new Lanes();

    /// That of the lanes, one read nearer.
    private final @Nullable Lane[] laneTable = lanes.table;

    /// Uses of blocks on other streams than that of their free; there before the first record is marked.
    @Nullable
    BlockUses uses;

    /// By index. A thread that frees a block came after the one that allocated it, which saw the route.
    private Route[] routes = new Route[16];

    /// Indices that were ever in use: those of open and draining routes, and those in `idle`.
    private int indices;

    /// Indices of routes that have drained, the one longest ago first.
    private final ArrayDeque<Integer> idle = new ArrayDeque<>();

    /// Has every entry into a region and every exit told to a watch; before the first of them.
    public void watch(ScopeWatch watch) {
        lanes.regions.watch = watch;
    }

    /// Opens a route.
    ///
    /// @param budgets what blocks are charged to, or null
    /// @param whenDrained runs once, after [#close] and when no block of the route is left
    public Route open(
            String name, int device, DeviceAllocator allocator, @Nullable Budgets budgets, Runnable whenDrained) {
        return open(name, device, allocator, new Meter(), budgets, whenDrained);
    }

    /// Opens another way to the allocator of a route, whose blocks are charged to other budgets.
    public Route openBeside(Route route, @Nullable Budgets budgets, Runnable whenDrained) {
        return open(route.name, route.device, route.maker, route.meter, budgets, whenDrained);
    }

    private synchronized Route open(
            String name,
            int device,
            DeviceAllocator allocator,
            Meter meter,
            @Nullable Budgets budgets,
            Runnable whenDrained) {
        int index = takeIndex();
        Route route = new Route(index, device, name, allocator, meter, budgets, lanes, this::retire, whenDrained);
        routes[index] = route;
        return route;
    }

    private int takeIndex() {
        if (idle.size() > RESTING || (indices == MAX_ROUTES && !idle.isEmpty())) {
            return idle.removeFirst();
        }
        if (indices == MAX_ROUTES) {
            throw new IllegalStateException("more than " + MAX_ROUTES
                    + " allocators, one for each device and limit, are open or have live blocks in one DeviceMemory");
        }
        if (indices == routes.length) {
            routes = Arrays.copyOf(routes, 2 * indices);
        }
        return indices++;
    }

    /// Takes the index of a route that has drained. A free that was counted down may not have counted itself yet.
    private void retire(Route route) {
        while (lanes.sum(route).live() != 0) {
            Lanes.pause();
        }
        route.meter.retire(route);
        synchronized (this) {
            route.retired = true;
            idle.addLast(route.index);
        }
    }

    /// Refuses further allocations, waits for those under way, and runs `whenDrained` as soon as no block is
    /// left, at once if there is none now.
    ///
    /// 1. The route refuses, and every thread sees it. 2. Allocations that began before have ended, so each
    /// block has its record. 3. The records are marked; a free that finds a mark counts. 4. Frees that took a
    /// record before it was marked have ended: as many blocks are counted alive as are marked. Then nobody is
    /// inside the allocator but frees that count.
    public void close(Route route) {
        route.refuse();
        lanes.awaitAllocations(route);
        long marked = drain(route.index);
        while (lanes.sum(route).live() > route.draining(marked)) {
            Lanes.pause();
        }
        route.expectDraining(marked);
    }

    /// Charges later blocks of a route to other budgets, if nobody uses it: no new allocation may begin
    /// meanwhile.
    ///
    /// @return false if it has live blocks
    public boolean recharge(Route route, Budgets budgets) {
        if (lanes.sum(route).live() != 0) {
            return false;
        }
        lanes.awaitAllocations(route);
        if (lanes.sum(route).live() != 0) {
            return false;
        }
        route.charge(budgets);
        return true;
    }

    /// Allocates through a route.
    ///
    /// @param byteSize 0 gives address 0
    /// @return the address, or [#REFUSED] if the route is closed
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws DeviceOutOfMemoryException if the allocator or a limit says so
    /// @throws AllocatorContractException if the allocator returns what it must not
    public long allocate(Route route, long byteSize, long stream) {
        return allocate(lane(), route, byteSize, stream);
    }

    /// As the other, for a caller that has its [#lane] already.
    public long allocate(@Nullable Lane lane, Route route, long byteSize, long stream) {
        if (((byteSize - 1) >>> SIZE_BITS) != 0) {
            return zeroOrTooLarge(route, byteSize);
        }
        if (lane == null) {
            return allocateSlowly(route, route.maker, byteSize, stream);
        }
        Tally tally = lane.of(route);
        tally.begins();
        DeviceAllocator entrance = route.entrance;
        if (entrance == null) {
            tally.failed();
            return REFUSED;
        }
        Lease lease = tally.lease;
        if (lease != null) {
            take(lease, tally, byteSize);
        }
        long address = 0;
        try {
            address = entrance.allocate(byteSize, route.device, stream);
            if (!isLegal(address) || !insert(address, byteSize, tally.index)) {
                throw illegal(route, address, byteSize, stream);
            }
        } catch (Throwable failure) {
            giveBack(route, address, byteSize, stream, failure);
            throw undone(route, tally, byteSize, failure);
        }
        tally.allocated(byteSize);
        return address;
    }

    private static void take(Lease lease, Tally tally, long byteSize) {
        boolean taken = false;
        try {
            lease.take(byteSize);
            taken = true;
        } finally {
            if (!taken) {
                tally.failed();
            }
        }
    }

    /// Gives back a block that could not be recorded, for want of heap most likely; one that must not be recorded
    /// was dealt with before.
    private static void giveBack(Route route, long address, long byteSize, long stream, Throwable failure) {
        if (address != 0 && !(failure instanceof AllocatorContractException)) {
            try {
                route.maker.free(address, byteSize, route.device, stream);
            } catch (Throwable second) {
                failure.addSuppressed(second);
            }
        }
    }

    private RuntimeException undone(Route route, Tally tally, long byteSize, Throwable failure) {
        if (tally.lease != null) {
            tally.lease.giveBack(byteSize);
        }
        tally.failed();
        return explained(route, byteSize, failure);
    }

    /// The calling thread's lane; null for a virtual thread.
    public @Nullable Lane lane() {
        return lanes.own(laneTable);
    }

    /// The region of the calling thread, whose lane is given; null outside any.
    public @Nullable Region region(@Nullable Lane lane) {
        return lane != null ? lane.region : lanes.regions.ofVirtualThread();
    }

    /// The region of the calling thread; null outside any.
    public @Nullable Region region() {
        return lanes.regions.current();
    }

    /// Puts the calling thread into a region, or out of any.
    public void enter(@Nullable Region region) {
        lanes.regions.set(region);
    }

    /// Runs code in a region, with the threads that it forks in a structured task scope.
    public <R, X extends Throwable> R callIn(Region region, ScopedValue.CallableOp<R, X> body) throws X {
        return lanes.regions.call(region, body);
    }

    /// Allocates from idle memory of a route's allocator and obtains no more, for a request that another route
    /// could not serve. The block is this route's.
    ///
    /// @return the address, or 0 if it has none, is closed, or can't tell
    public long lend(Route route, long byteSize, long stream) {
        Lends lends = route.maker.extension(Lends.class).orElse(null);
        if (lends == null) {
            return 0;
        }
        try {
            return Math.max(0, allocateSlowly(route, new IdleMemory(route.maker, lends), byteSize, stream));
        } catch (DeviceOutOfMemoryException none) {
            return 0;
        }
    }

    /// The way of virtual threads and of what is lent.
    ///
    /// @param from the route's allocator, or a view of it
    private long allocateSlowly(Route route, DeviceAllocator from, long byteSize, long stream) {
        Lane own = lanes.own();
        if (own == null) {
            refuseThreadStream(route.device, stream);
        }
        Lane lane = own != null ? own : lanes.enterShared();
        Tally tally = lane.of(route);
        tally.begins();
        if (own == null) {
            lane.leave();
        }
        long address = REFUSED;
        try {
            if (route.entrance != null) {
                address = allocateWithin(route.budgets, from, route, byteSize, stream);
            }
            return address;
        } finally {
            if (own == null) {
                lane.enter();
            }
            if (address == REFUSED) {
                tally.failed();
            } else {
                tally.allocated(byteSize);
            }
            if (own == null) {
                lane.leave();
            }
        }
    }

    private long allocateWithin(
            @Nullable Budgets budgets, DeviceAllocator from, Route route, long byteSize, long stream) {
        if (budgets != null) {
            budgets.take(route, byteSize);
        }
        long address = 0;
        try {
            address = from.allocate(byteSize, route.device, stream);
            if (!isLegal(address) || !insert(address, byteSize, route.index)) {
                throw illegal(route, address, byteSize, stream);
            }
            return address;
        } catch (Throwable failure) {
            giveBack(route, address, byteSize, stream, failure);
            if (budgets != null) {
                budgets.giveBack(byteSize);
            }
            throw explained(route, byteSize, failure);
        }
    }

    /// What the caller gets for a failure of the allocator, thrown in a way that the compiler lets through.
    private <T extends Throwable> RuntimeException explained(Route route, long byteSize, Throwable failure) throws T {
        if (failure instanceof DeviceOutOfMemoryException told) {
            return OutOfMemory.explain(route, statistics(route), byteSize, told);
        }
        @SuppressWarnings("unchecked")
        T asItIs = (T) failure;
        throw asItIs;
    }

    /// Frees a block, through whichever route made it.
    ///
    /// @param address 0 does nothing
    /// @param stream the stream of the last use
    /// @throws UnknownAddressException if no live block begins there
    public void free(long address, long stream) {
        if (!isLegal(address) || !remove(address, stream)) {
            refuseUnlessZero(address);
        }
    }

    /// Frees the block of a record that was found.
    ///
    /// The compare-and-set in `take` holds up all reads after it. So what the rest needs is read before, from an
    /// owner that may change until then if the program frees twice; when it did, the slow way looks again.
    ///
    /// @return false if there is no live record
    @Override
    boolean free(long[] chunk, int at, long address, long stream) {
        long owner = ownerIn(chunk, at);
        Route route = routes[routeOf(owner)];
        Lane lane = lane();
        if (lane == null) {
            refuseThreadStream(route.device, stream);
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
            // Before it is counted: a route without live blocks may be charged to other budgets.
            Lease lease = tally.lease;
            if (lease != null) {
                lease.giveBack(byteSizeOf(owner));
            }
            tally.freed(byteSizeOf(owner));
        }
        return true;
    }

    /// The way of virtual threads, of closing routes, of blocks that other streams used, and of lost races.
    private boolean freeSlowly(long[] chunk, int at, long address, long stream, long taken) {
        int state = LIVE;
        long owner = taken;
        while (owner == NONE) {
            state = stateOf(chunk, at, address);
            if (state == 0) {
                return false;
            }
            owner = take(chunk, at, address, state);
        }
        Route route = routes[routeOf(owner)];
        boolean draining = (state & DRAINING) != 0;
        try {
            if (uses != null && (state & USED) != 0) {
                uses.await(address, route.device, stream);
            }
            route.maker.free(address, byteSizeOf(owner), route.device, stream);
        } finally {
            // Before it is counted: whoever closes takes what is counted alive beyond the marked blocks
            // for calls under way.
            boolean last = draining && route.drainedOne();
            countFree(route, byteSizeOf(owner));
            if (last) {
                route.drained();
            }
        }
        return true;
    }

    /// A virtual thread changes its carrier, and with it which stream the per-thread default stream is.
    static void refuseThreadStream(int device, long stream) {
        if (stream == Streams.PER_THREAD_DEFAULT && Thread.currentThread().isVirtual()) {
            throw new UnusableStreamException(
                    device,
                    stream,
                    "the per-thread default stream is another one whenever a virtual thread changes its carrier: name"
                            + " a stream of your own, or work on a platform thread");
        }
    }

    /// The device of a live block.
    ///
    /// @throws UnknownAddressException if no live block begins there
    public int deviceOf(long address) {
        return routeOfBlock(address).device;
    }

    /// The route that a live block came through.
    ///
    /// @throws UnknownAddressException if no live block begins there
    Route routeOfBlock(long address) {
        long owner = isLegal(address) ? ownerOf(address) : NONE;
        if (owner == NONE) {
            throw new UnknownAddressException(address);
        }
        return routes[routeOf(owner)];
    }

    private void countFree(Route route, long byteSize) {
        if (route.budgets != null) {
            route.budgets.giveBack(byteSize);
        }
        Lane own = lanes.own();
        Lane lane = own != null ? own : lanes.enterShared();
        lane.of(route).freed(byteSize);
        if (own == null) {
            lane.leave();
        }
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

    private static AllocatorContractException illegal(Route route, long address, long byteSize, long stream) {
        boolean wellFormed = isLegal(address);
        if (!wellFormed && address != 0) {
            route.maker.free(address, byteSize, route.device, stream);
        }
        String fault = wellFormed
                ? "where a live block begins already"
                : "which is not a multiple of 256 between 256 and 2^" + ADDRESS_BITS;
        return new AllocatorContractException("allocator " + route.name + " returned 0x" + Long.toHexString(address)
                + " for " + byteSize + " bytes on device " + route.device + ", " + fault);
    }

    /// Is told of live blocks.
    public interface BlockVisitor {
        /// One of them.
        void block(long address, long byteSize, Route route);
    }

    /// Visits all live blocks; weakly consistent while other threads allocate and free, exact at rest.
    public void forEachLive(BlockVisitor visitor) {
        forEachLive((address, owner) -> visitor.block(address, byteSizeOf(owner), routes[routeOf(owner)]));
    }

    /// Lets the peak of a route and of those beside it begin at what is requested now.
    public void resetPeak(Route route) {
        Lane own = lanes.own();
        Lane lane = own != null ? own : lanes.enterShared();
        route.meter.resetPeak();
        lane.of(route).restartPeak();
        if (own == null) {
            lane.leave();
        }
    }

    /// The counters of a route and of those beside it; weakly consistent while other threads allocate, exact at
    /// rest.
    public RouteStatistics statistics(Route route) {
        TallySum sum = route.meter.sum();
        long requested = Math.max(0, route.meter.leased() - sum.credit);
        long peak = Math.max(requested, Math.max(sum.peak, route.meter.peak().bytes()));
        return new RouteStatistics(sum.allocations, sum.frees, requested, peak, sum.totalBytes);
    }
}
