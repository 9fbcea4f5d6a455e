package io.cistern.internal.routing;

import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.StreamUses;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/// Handles blocks that are used on streams other than that of their free, for allocators that can't do this
/// themselves.
///
/// **Idea.** Every allocator orders reuse after the stream of the free. So the free makes that stream wait for
/// the present ends of the other streams, and the allocator need not know about them.
///
/// **Steps.** 1. A use is offered to the allocator ([StreamUses]). 2. If the allocator does not take it,
/// the use is noted here and the owner record is marked. 3. The free of a marked record comes here before
/// it reaches the allocator; the frees of all other blocks are unaffected. 4. When a stream ends, one fence
/// is recorded on it for all its blocks, and their frees wait for that fence.
///
/// **Invariant**: the blocks of a stream = the blocks noted here with it; a fence is open exactly while its
/// stream has ended and has blocks.
///
/// **Threads.** Any. One lock is held also across driver calls, so that no stream ends between the look-up and
/// the record of its fence.
public final class BlockUses {
    /// No stream has this handle.
    private static final long NONE = Long.MIN_VALUE;

    /// The name of an existing stream.
    ///
    /// @param thread the thread of a per-thread default stream; else 0
    private record Name(int device, long stream, long thread) {}

    /// One stream that uses blocks, from its first recorded use to its end. If the handle is reused, the new
    /// stream gets another object, so no record of the first stream applies to the second.
    private static final class StreamUse {
        final Name name;

        /// The number of live blocks that are used on it.
        int blocks;

        /// Whether the stream has ended; then `fence` comes after its last work.
        boolean ended;

        long fence;

        StreamUse(Name name) {
            this.name = name;
        }
    }

    private final Router router;
    private final StreamOrder order;

    /// Streams that exist and use blocks.
    private final Map<Name, StreamUse> streams = new HashMap<>();

    /// Streams that have ended; a reused handle is removed when it is [opened][#opened] or used.
    private final Set<Name> ended = ConcurrentHashMap.newKeySet();

    private final Map<Long, Set<StreamUse>> usesOfBlocks = new HashMap<>();

    public BlockUses(Router router, StreamOrder order) {
        this.router = router;
        this.order = order;
        router.uses = this;
    }

    /// Notes that a live block is also used on a stream, by work enqueued there until the block is freed.
    ///
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual thread
    public void recordUse(long address, long stream) {
        Route route = router.routeOfBlock(address);
        Router.refuseThreadStream(route.device, stream);
        if (router.isKept(address)) {
            throw new UnknownAddressException(address);
        }
        StreamUses uses = route.allocator.extension(StreamUses.class).orElse(null);
        boolean told = uses != null && uses.recordUse(address, route.device, stream);
        if (!told || isCaptured(route.device, stream)) {
            note(address, name(route.device, stream));
        }
    }

    /// Returns whether a graph records the use. The graph then keeps the block, which no allocator can
    /// know.
    private boolean isCaptured(int device, long stream) {
        CaptureRoutes captures = router.routes().captures;
        return captures != null && captures.isCaptured(device, stream);
    }

    /// Marks the record first: a thread that frees a marked block waits here until the use is noted.
    private synchronized void note(long address, Name name) {
        if (!router.owners.markUsed(address)) {
            throw new UnknownAddressException(address);
        }
        ended.remove(name);
        StreamUse use = streams.computeIfAbsent(name, StreamUse::new);
        if (usesOfBlocks.computeIfAbsent(address, _ -> new HashSet<>()).add(use)) {
            use.blocks++;
        }
    }

    /// The uses of a block that is being freed, and the waits that were made for them before its record is
    /// removed.
    static final class Waits {
        private final Long address;
        private final StreamUse[] uses;

        /// One of the streams that is captured; then the others are not waited for. [#NONE] if none is.
        final long captured;

        /// Whether the stream of the free waits for all of them.
        final boolean ordered;

        /// Whether the uses are forgotten.
        boolean isTaken;

        private Waits(Long address, StreamUse[] uses, long captured, boolean ordered) {
            this.address = address;
            this.uses = uses;
            this.captured = captured;
            this.ordered = ordered;
        }

        boolean isCaptured() {
            return captured != NONE;
        }

        /// Visits the streams other than the captured one that use the block and have not ended.
        void forOthers(LongConsumer visitor) {
            for (StreamUse use : uses) {
                if (!use.ended && use.name.thread() == 0 && use.name.stream() != captured) {
                    visitor.accept(use.name.stream());
                }
            }
        }
    }

    /// Makes the stream of a free wait for the other uses of a block, while the block has its record, so that a
    /// full Java heap leaves the block as it was. It throws nothing else: if the driver refuses to order
    /// streams, or the stream of the free has ended, the host waits.
    ///
    /// A captured stream waits for no other stream, and no other waits for it: the block is returned with
    /// the graph, after all work of the context.
    synchronized Waits await(@Nullable CaptureRoutes captures, long address, int device, long stream) {
        Long key = address;
        StreamUse[] uses = usesOfBlocks.getOrDefault(key, Set.of()).toArray(StreamUse[]::new);
        long captured = captures != null ? capturedUser(uses, device, stream, captures) : NONE;
        boolean ordered = captured == NONE && order(uses, device, stream);
        return new Waits(key, uses, captured, ordered);
    }

    /// Forgets the uses of a block, before its address may be reused.
    synchronized void taken(Waits waits) {
        usesOfBlocks.remove(waits.address);
        waits.isTaken = true;
    }

    /// Releases the streams that used the block.
    synchronized void end(Waits waits) {
        for (StreamUse use : waits.uses) {
            forget(use);
        }
    }

    /// Makes the stream of a free wait for the other streams, none of which is captured any more.
    ///
    /// @return false if the driver does not allow it now, as during captures
    synchronized boolean order(Waits waits, int device, long stream) {
        return order(waits.uses, device, stream);
    }

    private boolean order(StreamUse[] uses, int device, long stream) {
        boolean ordered = true;
        Name freeing = name(device, stream);
        for (StreamUse use : uses) {
            if (use.ended) {
                ordered &= await(freeing, stream, use.fence);
            } else if (!use.name.equals(freeing)) {
                ordered &= awaitPresentEnd(use.name, freeing, stream);
            }
        }
        return ordered;
    }

    /// Returns [#NONE] if neither the stream of the free nor any other user is captured.
    private long capturedUser(StreamUse[] uses, int device, long stream, CaptureRoutes captures) {
        if (!ended.contains(name(device, stream)) && captures.isCaptured(device, stream)) {
            return stream;
        }
        for (StreamUse use : uses) {
            if (!use.ended && use.name.thread() == 0 && captures.isCaptured(device, use.name.stream())) {
                return use.name.stream();
            }
        }
        return NONE;
    }

    /// Returns false if the driver does not allow it now.
    private boolean awaitPresentEnd(Name used, Name freeing, long stream) {
        long fence = record(used);
        try {
            return await(freeing, stream, fence);
        } finally {
            order.release(used.device(), fence);
        }
    }

    /// Returns false if the driver does not allow it now.
    private boolean await(Name freeing, long stream, long fence) {
        int device = freeing.device();
        return (!ended.contains(freeing) && DeadContext.isDone(() -> order.await(device, stream, fence)))
                || DeadContext.isDone(() -> order.synchronize(device, fence));
    }

    private long record(Name stream) {
        boolean canBeNamed = stream.thread() == 0
                || stream.thread() == Thread.currentThread().threadId();
        return canBeNamed ? order.record(stream.device(), stream.stream()) : order.recordAll(stream.device());
    }

    /// Counts one block fewer on a stream.
    private void forget(StreamUse use) {
        if (--use.blocks > 0) {
            return;
        }
        if (use.ended) {
            order.release(use.name.device(), use.fence);
        } else {
            streams.remove(use.name, use); // a later stream may have the name now
        }
    }

    /// Records the fence of a stream that ends, for the blocks that it uses.
    public synchronized void streamClosing(int device, long stream) {
        Name name = name(device, stream);
        if (stream > Streams.PER_THREAD_DEFAULT) {
            ended.add(name);
        }
        StreamUse use = streams.remove(name);
        if (use != null) {
            use.fence = record(use.name);
            use.ended = true;
        }
    }

    /// Notes that a stream exists.
    public void opened(int device, long stream) {
        if (hasEnded(device, stream)) {
            ended.remove(name(device, stream));
        }
    }

    /// Returns whether a stream has ended, so that the driver must not be asked about its handle. The
    /// answer remains valid only under the monitor of this object.
    public boolean hasEnded(int device, long stream) {
        return !ended.isEmpty() && ended.contains(name(device, stream));
    }

    private static Name name(int device, long stream) {
        long thread =
                stream == Streams.PER_THREAD_DEFAULT ? Thread.currentThread().threadId() : 0;
        return new Name(device, stream == Streams.LEGACY_DEFAULT ? 0 : stream, thread);
    }
}
