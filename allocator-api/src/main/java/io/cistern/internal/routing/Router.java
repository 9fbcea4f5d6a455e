package io.cistern.internal.routing;

import io.cistern.cuda.Streams;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.internal.names.FailureNote;
import io.cistern.internal.names.StackRoom;
import io.cistern.internal.threads.ThreadTable;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import org.jspecify.annotations.Nullable;

/// The routing kernel, which handles every allocation and free of every allocator.
///
/// **Allocate**: take the bytes from the limits, if there are any → ask the route's allocator → check the
/// address and record the owner → count in the calling thread's counters. A failure undoes the steps before it.
///
/// **Free**: remove the owner record (once: the second free of an address finds none) → give the block to
/// its allocator → count. The record is removed first, since the allocator may reuse the address at once,
/// on another thread.
///
/// **Errors.** Any call may throw a StackOverflowError. So after a failed call the counts are made by writes to
/// fields; where that is impossible, [StackRoom] checks the stack before anything changes.
///
/// **Cost.** For a platform thread: no lock, no native call, no garbage, one compare-and-set (in free). A
/// virtual thread counts in shared counters, which takes one more compare-and-set.
public final class Router implements OwnerTable.Freeing {
    /// [#allocate] returns this if the route is closed; no address has its low bits.
    public static final long REFUSED = -1;

    private static final long UNKNOWN = Long.MIN_VALUE;

    final ThreadTable<ThreadCounters> threads =
            ThreadCounters.table(counters -> counters.scopes = this.scopes.inherited());

    /// The table of `threads`, which saves one read.
    private final @Nullable ThreadCounters[] countersTable = threads.entries();

    private final ScopeStacks scopes = new ScopeStacks(threads);
    final OwnerTable owners = new OwnerTable();
    private final Routes routes = new Routes(threads, owners);

    /// The uses of blocks on streams other than that of their free. Set before the first record is marked.
    @Nullable
    BlockUses uses;

    /// Returns the owner table, for [#free(OwnerTable, long, long)].
    public OwnerTable owners() {
        return owners;
    }

    public Routes routes() {
        return routes;
    }

    public ScopeStacks scopes() {
        return scopes;
    }

    /// Allocates through a route.
    ///
    /// @param byteSize 0 gives address 0
    /// @return the address, or [#REFUSED] if the route is closed
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws DeviceOutOfMemoryException if the allocator has no memory, or a limit refuses
    /// @throws AllocatorContractException if the allocator returns an illegal address
    public long allocate(Route route, long byteSize, long stream) {
        return allocate(counters(), route, byteSize, stream);
    }

    /// Allocates through a route, for a caller that already has its [#counters].
    public long allocate(@Nullable ThreadCounters counters, Route route, long byteSize, long stream) {
        if (Long.compareUnsigned(byteSize - 1, OwnerTable.MAX_SIZE) >= 0) {
            return zeroOrTooLarge(route, byteSize);
        }
        if (counters == null) {
            return route.allocateTarget == null
                    ? refused(route, byteSize, stream)
                    : allocateThrough(route, byteSize, stream);
        }
        Tally tally = counters.of(route);
        Lease lease = tally.lease;
        long attempts = tally.attempts;
        Lease charged = null;
        DeviceAllocator target;
        long address = 0;
        try {
            tally.begins();
            target = route.allocateTarget;
            if (target != null) {
                if (lease != null) {
                    lease.take(byteSize);
                    charged = lease;
                }
                address = target.allocate(byteSize, route.device, stream);
                if (!AddressCheck.isLegal(address) || !owners.insert(address, byteSize, tally.index)) {
                    throw AddressCheck.illegal(this, route, find(address), address, byteSize, stream);
                }
            }
        } catch (Throwable failure) {
            try {
                AddressCheck.giveBackUnrecorded(route, address, byteSize, stream, failure);
            } finally {
                if (charged != null) {
                    charged.owed += byteSize;
                }
                if (tally.attempts != attempts) {
                    tally.failures++;
                }
            }
            throw explained(route, byteSize, failure);
        }
        if (target == null) {
            tally.failures++;
            return refused(route, byteSize, stream);
        }
        return counted(tally, byteSize, address);
    }

    private static long counted(Tally tally, long byteSize, long address) {
        long requested = tally.requested;
        boolean beyond;
        try {
            beyond = tally.allocated(byteSize);
        } catch (Throwable full) {
            tally.requested = requested + byteSize;
            tally.allocations++;
            throw full;
        }
        if (beyond) {
            tally.meter.raise(tally, byteSize);
        }
        return address;
    }

    private long refused(Route route, long byteSize, long stream) {
        if (!route.isOpen()) {
            Route successor = route.successor();
            return successor == null ? REFUSED : allocate(successor, byteSize, stream);
        }
        route.requireAwake(0);
        CaptureRoutes suspending = routes.captures;
        return suspending == null
                ? allocateThrough(route, byteSize, stream)
                : suspending.allocate(route, byteSize, stream);
    }

    /// Allocates from a route's allocator, suspended or not.
    ///
    /// @return the address, or [#REFUSED] if the route is closed
    public long allocateThrough(Route route, long byteSize, long stream) {
        long address = allocateSlowly(route, null, byteSize, stream);
        Route successor = address == REFUSED ? route.successor() : null;
        return successor == null ? address : allocate(successor, byteSize, stream);
    }

    /// Returns the calling thread's counters; null for a virtual thread.
    public @Nullable ThreadCounters counters() {
        ThreadCounters found = ThreadTable.find(countersTable, 0);
        return found != null ? found : threads.own();
    }

    /// Allocates from idle memory of a route's allocator, which obtains no more, for a request that another
    /// route could not serve. The block belongs to this route.
    ///
    /// @return the address, or 0 if the allocator has no idle memory for it, is closed, or can't lend
    public long lend(Route route, long byteSize, long stream) {
        MemoryReclaim lender = route.allocator.extension(MemoryReclaim.class).orElse(null);
        if (lender == null || !lender.canLend().available() || byteSize > OwnerTable.MAX_SIZE) {
            return 0;
        }
        try {
            return Math.max(0, allocateSlowly(route, lender, byteSize, stream));
        } catch (DeviceOutOfMemoryException | MemoryAsleepException none) {
            return 0;
        }
    }

    /// Allocates for virtual threads and for lending.
    ///
    /// @param lender gives only idle memory; null to ask the route's allocator
    private long allocateSlowly(Route route, @Nullable MemoryReclaim lender, long byteSize, long stream) {
        StackRoom.require();
        refuseThreadStream(route.device, stream);
        ThreadCounters counters = threads.enter();
        Tally tally = counters.leaveBeginning(route);
        long address = REFUSED;
        long again = 0;
        boolean beyond;
        try {
            if (route.isOpen()) {
                route.requireAwake(0);
                again = -route.retain(-byteSize);
                address = allocateWithin(route.budgets, lender, route, byteSize, again, stream);
            }
        } finally {
            if (address == REFUSED && again > 0) {
                route.retain(again); // the route is not closed before this allocation ends
                again = 0;
            }
            beyond = counters.countAllocation(tally, byteSize, again, address != REFUSED);
        }
        if (beyond) {
            tally.meter.raise(tally, byteSize);
        }
        return address;
    }

    private long allocateWithin(
            @Nullable Budgets budgets,
            @Nullable MemoryReclaim lender,
            Route route,
            long byteSize,
            long again,
            long stream) {
        long more = byteSize - again;
        if (budgets != null && more > 0) {
            budgets.take(route, byteSize, again, null);
        }
        long address = 0;
        try {
            address = made(lender, route, byteSize, stream);
            if (!AddressCheck.isLegal(address) || !owners.insert(address, byteSize, route.index)) {
                throw AddressCheck.illegal(this, route, find(address), address, byteSize, stream);
            }
            return address;
        } catch (Throwable failure) {
            AddressCheck.giveBackUnrecorded(route, address, byteSize, stream, failure);
            if (budgets != null) {
                budgets.giveBack(more);
            }
            throw explained(route, byteSize, failure);
        }
    }

    private static long made(@Nullable MemoryReclaim lender, Route route, long byteSize, long stream) {
        if (lender == null) {
            return route.allocator.allocate(byteSize, route.device, stream);
        }
        long idle = lender.tryAllocate(byteSize, route.device, stream);
        if (idle == 0) {
            throw new DeviceOutOfMemoryException(byteSize, route.device, "no idle block fits");
        }
        return idle;
    }

    /// Returns or throws the exception that reports a failure of the allocator to the caller. The cast lets
    /// it throw checked exceptions too.
    private <T extends Throwable> RuntimeException explained(Route route, long byteSize, Throwable failure) throws T {
        if (failure instanceof DeviceOutOfMemoryException told) {
            return told.isByLimit() && told.getCause() == null ? told : outOfMemory(route, byteSize, told);
        }
        FailureNote.add(
                failure,
                "allocator " + route.name + " was asked for " + ByteSizes.count(byteSize) + " on device "
                        + route.device);
        @SuppressWarnings("unchecked")
        T asItIs = (T) failure;
        throw asItIs;
    }

    /// Returns an exception that names the allocator, its live blocks, and the caller's bytes, in case the
    /// allocator reported rounded ones.
    private DeviceOutOfMemoryException outOfMemory(Route route, long byteSize, DeviceOutOfMemoryException told) {
        RouteStatistics statistics = route.statistics();
        long blocks = statistics.allocations() - statistics.frees();
        String detail =
                "allocator " + route.name + " has " + ByteSizes.exact(statistics.requestedBytes()) + " requested in "
                        + blocks + (blocks == 1 ? " live block" : " live blocks")
                        + (told.detail().isEmpty() ? "" : "; " + told.detail());
        return told.passedOn(byteSize, detail);
    }

    /// Frees a block, through whichever route made it.
    ///
    /// @param address 0 does nothing
    /// @param stream the stream of the last use
    /// @throws UnknownAddressException if no live block begins there
    public void free(long address, long stream) {
        free(owners, address, stream);
    }

    /// Frees a block for a caller that keeps the [owners][#owners] itself, which saves one of the dependent
    /// reads that a free's time consists of.
    public void free(OwnerTable owners, long address, long stream) {
        if (!AddressCheck.isLegal(address) || !owners.remove(address, stream, this)) {
            refuseUnlessZero(address);
        }
    }

    private static void refuseUnlessZero(long address) {
        if (address != 0) {
            throw new UnknownAddressException(address);
        }
    }

    /// Frees the block of a record that was found.
    ///
    /// The compare-and-set in `take` delays all reads after it. So this first reads everything that the
    /// free needs, from an owner that may still change if the program frees twice. If it did change, the
    /// slow path reads again.
    ///
    /// @return false if there is no live record
    @Override
    public boolean free(Route route, long owner, long[] chunk, int at, long address, long stream) {
        ThreadCounters counters = counters();
        DeviceAllocator target = route.freeTarget;
        if (counters == null || target == null) {
            refuseThreadStream(route.device, stream);
            return freeSlowly(chunk, at, address, stream, OwnerTable.NONE);
        }
        Tally tally = counters.of(route);
        long byteSize = OwnerTable.byteSizeOf(owner);
        long taken;
        try {
            taken = OwnerTable.take(chunk, at, address);
        } catch (Throwable full) {
            if (chunk[at] == (address | OwnerTable.FREEING)) {
                chunk[at] = address | OwnerTable.LIVE;
            }
            throw full;
        }
        if (taken != owner) {
            return freeSlowly(chunk, at, address, stream, taken);
        }
        Lease lease = tally.lease;
        long requested = UNKNOWN;
        try {
            target.free(address, byteSize, route.device, stream);
            // Before the free is counted, since a route without live blocks may be charged to other budgets.
            if (lease != null) {
                lease.giveBack(byteSize);
                lease = null;
            }
            requested = tally.requested;
            tally.freed(byteSize);
        } catch (Throwable failure) {
            if (lease != null) {
                lease.owed += byteSize;
            }
            tally.requested = (requested != UNKNOWN ? requested : tally.requested) - byteSize;
            tally.frees++;
            noteFree(failure, route);
            throw failure;
        }
        return true;
    }

    /// Frees for virtual threads, for suspended and closing routes, for marked blocks, and after lost races.
    ///
    /// A block that is kept keeps its record, so its counts and charges stay as they are, and a full Java heap
    /// leaves it alive.
    private boolean freeSlowly(long[] chunk, int at, long address, long stream, long taken) {
        StackRoom.require();
        if (taken != OwnerTable.NONE) { // the block was freed twice, and its address is another block's now
            Route route = owners.routeOf(taken);
            ThreadCounters counters = threads.enter();
            end(counters, counters.leaveWith(route), route, OwnerTable.LIVE, address, taken, stream, null);
            return true;
        }
        while (true) {
            int state = OwnerTable.stateOf(chunk, at, address);
            if (state == 0 || (state & OwnerTable.KEPT) != 0) {
                return false;
            }
            Route route = owners.routeOf(OwnerTable.ownerIn(chunk, at));
            BlockUses others = (state & OwnerTable.USED) != 0 ? uses : null;
            boolean freed;
            if (others == null) {
                freed = keeps(route, state, address, stream, null) || freed(chunk, at, address, stream, state, null);
            } else {
                freed = freedUsed(chunk, at, address, stream, state, route, others);
            }
            if (freed) {
                return true;
            }
        }
    }

    private boolean freedUsed(
            long[] chunk, int at, long address, long stream, int state, Route route, BlockUses others) {
        BlockUses.Waits waits = others.await(routes.captures, address, route.device, stream);
        try {
            return freedWithGraph(chunk, at, address, state, route, others, waits)
                    || keeps(route, state, address, stream, waits)
                    || freed(chunk, at, address, stream, state, waits);
        } finally {
            if (!waits.isTaken && owners.isKept(address)) {
                others.taken(waits);
                others.end(waits);
            }
        }
    }

    /// Takes a record and frees its block, even if the address was freed and allocated again.
    ///
    /// @return false if the record is not in that state any more
    private boolean freed(long[] chunk, int at, long address, long stream, int state, BlockUses.@Nullable Waits waits) {
        Route route = owners.routeOf(OwnerTable.ownerIn(chunk, at));
        ThreadCounters counters = threads.enter();
        Tally tally = counters.leaveWith(route);
        long owner = OwnerTable.take(chunk, at, address, state);
        if (owner == OwnerTable.NONE) {
            return false;
        }
        if (owners.routeOf(owner) != route) {
            route = owners.routeOf(owner);
            counters = threads.enter();
            tally = counters.leaveWith(route);
        }
        end(counters, tally, route, state, address, owner, stream, waits);
        return true;
    }

    /// Frees the block of a record that was taken.
    private void end(
            ThreadCounters counters,
            Tally tally,
            Route route,
            int state,
            long address,
            long owner,
            long stream,
            BlockUses.@Nullable Waits waits) {
        long byteSize = OwnerTable.byteSizeOf(owner);
        BlockUses others = uses;
        try {
            if (waits != null && others != null) {
                others.taken(waits);
            }
            route.allocator.free(address, byteSize, route.device, stream);
        } catch (Throwable failure) {
            noteFree(failure, route);
            throw failure;
        } finally {
            try {
                if (waits != null && others != null) {
                    others.end(waits);
                }
            } finally {
                count(counters, tally, route, state, byteSize);
            }
        }
    }

    private static void count(ThreadCounters counters, Tally tally, Route route, int state, long byteSize) {
        // Before the free is counted: a closing thread takes blocks that are counted alive, beyond the
        // marked ones, for calls under way.
        boolean last = (state & OwnerTable.DRAINING) != 0 && route.drainedOne();
        boolean retained = route.retain(byteSize) != 0;
        if (route.budgets != null && !retained) {
            route.budgets.giveBack(byteSize);
        }
        counters.countFree(tally, retained ? 0 : byteSize);
        if (!retained) {
            route.passOn(byteSize);
        }
        if (last) {
            route.drainedByFree();
        }
    }

    private static void noteFree(Throwable failure, Route route) {
        FailureNote.add(failure, "allocator " + route.name + " was freeing a block on device " + route.device);
    }

    /// Keeps a block that is being freed: with a graph that may use it, or if the stream of the free can't wait now
    /// for the other streams that use it.
    private boolean keeps(Route route, int state, long address, long stream, BlockUses.@Nullable Waits waits) {
        CaptureRoutes captures = routes.captures;
        if (captures == null) {
            return false;
        }
        if (waits != null && !waits.ordered && !(waits.isCaptured() && order(waits, route, stream))) {
            captures.keep(route, address);
            return true;
        }
        if (route.freeTarget != null && (state & OwnerTable.OF_GRAPH) == 0) {
            return false;
        }
        BlockUses others = uses;
        if (others == null) { // then no end of a stream is reported
            return captures.keeps(route, address, stream);
        }
        synchronized (others) { // so that the stream can't end meanwhile
            return captures.keeps(route, address, stream);
        }
    }

    /// Makes the stream of a free wait for the other users of a block, none of which is captured any more.
    private boolean order(BlockUses.Waits waits, Route route, long stream) {
        return uses != null && uses.order(waits, route.device, stream);
    }

    /// Serves the free of a block that a captured stream uses.
    ///
    /// @return false if that stream is not captured any more
    private boolean freedWithGraph(
            long[] chunk, int at, long address, int state, Route route, BlockUses others, BlockUses.Waits waits) {
        CaptureRoutes captures = routes.captures;
        if (captures == null || !waits.isCaptured()) {
            return false;
        }
        synchronized (others) { // so that the stream can't end meanwhile
            if (others.hasEnded(route.device, waits.captured)) {
                return false;
            }
            waits.forOthers(each -> captures.usedToo(route, address, each));
            return switch (captures.freeCaptured(route, address, waits.captured)) {
                case KEPT -> true;
                case OWN -> freed(chunk, at, address, waits.captured, state, waits);
                case NOT_CAPTURED -> false;
            };
        }
    }

    /// Marks a live block, so that each free of it asks [CaptureRoutes].
    public void markOfGraph(long address) {
        owners.markOfGraph(address);
    }

    /// Keeps a live block that the program frees: it stays counted and charged, and can't be freed any more.
    ///
    /// @return false if no live block begins there
    public boolean keep(long address) {
        return owners.keep(address);
    }

    /// Makes a kept block the program's again.
    public void revive(long address) {
        owners.revive(address);
    }

    public boolean isKept(long address) {
        return owners.isKept(address);
    }

    /// Returns the name of what keeps a block although the program has freed it; null if nothing does.
    public @Nullable String keeper(long address) {
        CaptureRoutes captures = routes.captures;
        return captures == null || !owners.isKept(address) ? null : captures.keeper(address);
    }

    /// Frees a kept block, whatever [CaptureRoutes] says.
    public void freeKept(long address, long stream) {
        StackRoom.require();
        owners.remove(address, stream, (_, _, chunk, at, _, _) -> {
            int state;
            do {
                state = OwnerTable.stateOf(chunk, at, address);
            } while (state != 0 && !freed(chunk, at, address, stream, state, null));
            return true;
        });
    }

    /// Notes that a stream exists.
    public void opened(int device, long stream) {
        if (uses != null) {
            uses.opened(device, stream);
        }
    }

    /// See [BlockUses#hasEnded].
    public boolean hasEnded(int device, long stream) {
        return uses != null && uses.hasEnded(device, stream);
    }

    /// Refuses the per-thread default stream on a virtual thread: it changes with the thread's carrier.
    ///
    /// @throws UnusableStreamException for that stream on a virtual thread
    public static void refuseThreadStream(int device, long stream) {
        if (stream == Streams.PER_THREAD_DEFAULT && Thread.currentThread().isVirtual()) {
            throw new UnusableStreamException(
                    device,
                    stream,
                    "the per-thread default stream changes whenever a virtual thread changes its carrier: pass a"
                            + " stream of your own, or use a platform thread");
        }
    }

    /// Returns the device of a live block.
    ///
    /// @throws UnknownAddressException if no live block begins there
    public int deviceOf(long address) {
        return routeOfBlock(address).device;
    }

    /// Throws if the memory of a block is asleep.
    ///
    /// @param address where a block begins; other addresses count as awake
    /// @throws MemoryAsleepException if its pool is asleep
    public void requireAwake(long address) {
        Route route = find(address);
        if (route != null) {
            route.requireAwake(address);
        }
    }

    /// Returns the route that a live block came through.
    ///
    /// @throws UnknownAddressException if no live block begins there
    public Route routeOfBlock(long address) {
        Route route = find(address);
        if (route == null) {
            throw new UnknownAddressException(address);
        }
        return route;
    }

    /// Returns whether a live block begins at an address. A freed block that is kept for a graph is not
    /// live.
    public boolean isLive(long address) {
        return find(address) != null && !owners.isKept(address);
    }

    private @Nullable Route find(long address) {
        long owner = AddressCheck.isLegal(address) ? owners.ownerOf(address) : OwnerTable.NONE;
        return owner != OwnerTable.NONE ? owners.routeOf(owner) : null;
    }

    private static long zeroOrTooLarge(Route route, long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize is negative: " + byteSize);
        }
        if (byteSize > 0) {
            throw DeviceOutOfMemoryException.aboveLimit(byteSize, route.device, "more than a device can address");
        }
        return 0;
    }

    /// Visits live blocks.
    public interface BlockVisitor {
        void block(long address, long byteSize, Route route);
    }

    /// A function of a live block.
    public interface BlockFunction<R> {
        @Nullable
        R of(long address, long byteSize, Route route);
    }

    /// Returns the size of a live block, kept or not.
    ///
    /// @throws UnknownAddressException if no live block begins there
    public long byteSizeOf(long address) {
        long owner = owners.ownerOf(address);
        if (owner == OwnerTable.NONE) {
            throw new UnknownAddressException(address);
        }
        return OwnerTable.byteSizeOf(owner);
    }

    /// Applies a function to the live block that begins at an address, kept or not; null if none does.
    public <R> @Nullable R ofLive(long address, BlockFunction<R> function) {
        long owner = AddressCheck.isLegal(address) ? owners.ownerOf(address) : OwnerTable.NONE;
        return owner == OwnerTable.NONE
                ? null
                : function.of(address, OwnerTable.byteSizeOf(owner), owners.routeOf(owner));
    }

    /// Visits all live blocks but kept ones; weakly consistent while other threads allocate and free, exact when
    /// idle.
    public void forEachLive(BlockVisitor visitor) {
        forEach(false, visitor);
    }

    /// Visits the kept blocks, as [#forEachLive] does the others.
    public void forEachKept(BlockVisitor visitor) {
        forEach(true, visitor);
    }

    private void forEach(boolean kept, BlockVisitor visitor) {
        owners.forEachLive((address, owner, isKept) -> {
            if (isKept == kept) {
                visitor.block(address, OwnerTable.byteSizeOf(owner), owners.routeOf(owner));
            }
        });
    }
}
