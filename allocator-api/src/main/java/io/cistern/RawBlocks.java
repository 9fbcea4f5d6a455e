package io.cistern;

import io.cistern.diagnostics.LiveBlock;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.context.EventOrder;
import io.cistern.internal.context.EventStreams;
import io.cistern.internal.routing.BlockUses;
import io.cistern.internal.routing.Lane;
import io.cistern.internal.routing.Region;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.routing.ScopeWatch;
import io.cistern.spi.BlockRecords;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The part of [DeviceMemory] that hands out blocks by their addresses and takes them back: in the order of a stream,
/// behind an event, and with uses on other streams.
///
/// It is a superclass and no part, so that an allocation reads its route in the object that the program calls.
///
/// **Threads.** Any thread may call any method at any time.
abstract sealed class RawBlocks extends OpenAllocators permits DeviceMemory {
    final BlockUses uses;
    final EventOrder orderOfUses;
    final EventStreams eventStreams;
    final Captures captures;
    final MemoryLadder ladder;
    final @Nullable OpenScopes openScopes;
    private final @Nullable ScopeWatch watch;

    RawBlocks(DeviceMemoryBuilder builder) {
        super(builder);
        orderOfUses = new EventOrder(driver(), 0);
        uses = new BlockUses(router, orderOfUses, driver().devices()::synchronize);
        eventStreams = new EventStreams(driver(), environment().deviceCount());
        captures = new Captures((DeviceMemory) this, eventStreams);
        ladder = new MemoryLadder((DeviceMemory) this, builder.ladder, builder.longestWait);
        openScopes = builder.reportScopes ? new OpenScopes() : null;
        watch = builder.reportScopes ? new ScopeWatch() : null;
        if (watch != null) {
            router.watch(watch);
        }
    }

    /// Allocates memory for use on a stream, from the allocator of the innermost scope that fits, else from the
    /// current one.
    ///
    /// @param byteSize bytes wanted; 0 gives address 0, which may be freed
    /// @param device the device's ordinal
    /// @param stream the stream on which the memory is used first: a `CUstream`, 0 and 1 for the legacy default
    ///     stream
    /// @return an address that is a multiple of 256
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    /// @throws AllocatorContractException if a plug-in returned an illegal address
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread
    /// @throws ConfigurationException if no allocator is current and the configured one can't be opened
    /// @throws IllegalStateException if this device memory, or the allocator, is closed
    public long allocate(long byteSize, int device, long stream) {
        Lane lane = router.lane();
        Region region = router.region(lane);
        Route route = region == null ? null : region.route(device, stream);
        if (route == null) {
            route = currentRoute(device, stream);
        }
        long address;
        try {
            address = router.allocate(lane, route, byteSize, stream);
        } catch (DeviceOutOfMemoryException failure) {
            return climb(route, byteSize, stream, failure);
        }
        return address != Router.REFUSED ? address : allocateFromNext(route, byteSize, stream);
    }

    private long climb(Route refusing, long byteSize, long stream, DeviceOutOfMemoryException failure) {
        MemoryLimit limit = limit(router.region(), refusing.device(), stream);
        var request = new MemoryLadder.Request(refusing, limit, byteSize, stream, closed -> nextRoute(closed, stream));
        return ladder.climb(request, failure);
    }

    private static @Nullable MemoryLimit limit(@Nullable Region region, int device, long stream) {
        return region == null ? null : (MemoryLimit) region.limit(device, stream);
    }

    private Route currentRoute(int device, long stream) {
        Route route = CurrentAllocators.route(currentRoutes, device);
        return route != null ? route : chosenRoute(device, stream);
    }

    private Route chosenRoute(int device, long stream) {
        if (watch != null) {
            watch.allocates(device, stream);
        }
        return current(device).route(device);
    }

    /// Goes to the allocator that became current while the former one closed. Ends, since each turn needs one more
    /// swap.
    private long allocateFromNext(Route refusing, long byteSize, long stream) {
        Route route = refusing;
        long address = Router.REFUSED;
        try {
            while (address == Router.REFUSED) {
                route = nextRoute(route, stream);
                address = router.allocate(route, byteSize, stream);
            }
            return address;
        } catch (DeviceOutOfMemoryException failure) {
            return climb(route, byteSize, stream, failure);
        }
    }

    /// The route of a request instead of one that is closed.
    ///
    /// @throws IllegalStateException if it is the same
    private Route nextRoute(Route closed, long stream) {
        Region region = router.region();
        Route route = region == null ? null : region.route(closed.device(), stream);
        if (route == null) {
            route = currentRoute(closed.device(), stream);
        }
        if (route == closed) {
            throw new IllegalStateException("allocator " + closed + " is closed");
        }
        return route;
    }

    /// Frees a block from any allocator of this device memory; it goes to the one that made it.
    ///
    /// @param address what an allocation returned; 0 does nothing
    /// @param stream the stream of the last use, which exists and is one of the block's device: of all uses, unless
    ///     the others were [recorded][#recordUse]
    /// @throws UnknownAddressException if no live block begins there: it was freed before, lies inside a block,
    ///     or is foreign
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread, and nothing is
    ///     freed then; for a stream in a capture that nobody announced, beside one that was: the block goes later
    public void free(long address, long stream) {
        try {
            router.free(address, stream);
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// With what an allocator that checks remembers of the address.
    private UnknownAddressException explained(UnknownAddressException unknown) {
        if (unknown.block().isPresent()) {
            return unknown;
        }
        for (Allocator allocator : allocators) {
            var block = allocator.extension(BlockRecords.class).flatMap(records -> records.block(unknown.address()));
            if (block.isPresent()) {
                return new UnknownAddressException(unknown.address(), block.get());
            }
        }
        return unknown;
    }

    /// Frees a block after an event of the program: its memory is handed out again when the event has passed, and
    /// no stream waits for it. The precise form, for a last use that other work comes behind on its stream.
    ///
    /// @param address what an allocation returned; 0 does nothing
    /// @param event a `CUevent` of any device, recorded after the last use: after all uses, unless the others
    ///     were [recorded][#recordUse]. What it recorded until now counts; from here on it may be recorded again
    ///     or destroyed
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.cuda.CudaException if the driver refuses the event; nothing is freed then
    public void freeAfter(long address, long event) {
        if (address == 0) {
            return;
        }
        try {
            int device = router.deviceOf(address);
            long stream = eventStreams.after(device, event);
            if (captures.isCaptured(device, stream)) {
                // The event's capture has it now, and the program does not join it: the free must become no node there.
                uses.recordUse(address, stream);
            }
            router.free(address, stream);
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// Says that a block is also used on another stream, by work enqueued there until the block is freed: its
    /// memory isn't handed out again before that stream has got past those uses. Nothing happens now: streams are
    /// looked at after the free. Ordering the streams oneself, and freeing on the last one, needs no such call.
    ///
    /// Where the allocator can't wait for other streams ([io.cistern.spi.RecordsUse]), the stream of the free is
    /// made to wait for them at the free.
    ///
    /// @param address what an allocation returned, not an address inside a block; 0 does nothing
    /// @param stream a stream of the block's device, which exists; for one of another device, record an event
    ///     there and free [after][#freeAfter] it. If its end is [announced][DeviceMemory#streamClosing] before
    ///     the free, the work until then counts
    /// @throws UnknownAddressException if no live block begins there
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread
    /// @throws MemoryAsleepException if its pool is asleep
    public void recordUse(long address, long stream) {
        if (address == 0) {
            return;
        }
        try {
            requireAwake(address);
            captures.usedElsewhere(address);
            uses.recordUse(address, stream);
        } catch (UnknownAddressException unknown) {
            throw explained(unknown);
        }
    }

    /// As [#recordUse], for uses that are over when an event of the program has passed.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses the event
    public void recordUseUntil(long address, long event) {
        if (address != 0) {
            uses.recordUse(address, eventStreams.after(router.deviceOf(address), event));
        }
    }

    /// Throws if a block is asleep, for code that is about to use a bare address: what a [io.cistern.buffers.DeviceBuffer] asks of
    /// itself.
    ///
    /// @param address where a block begins; anything else is awake
    /// @throws MemoryAsleepException if its pool [sleeps][MemoryPool#sleep]
    public void requireAwake(long address) {
        if (anyAsleep) {
            router.requireAwake(address);
        }
    }

    /// The blocks that are alive, of all allocators; not those that the program has freed and a [graph][GraphMemory]
    /// keeps. Weakly consistent while other threads allocate. How much is known of each, the [io.cistern.diagnostics.LeakLevel] says. It
    /// looks at the whole owner table: some microseconds a thousand blocks.
    public List<LiveBlock> leaks() {
        return leaks.blocks(_ -> true);
    }
}
