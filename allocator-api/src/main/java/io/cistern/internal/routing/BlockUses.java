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
import org.jspecify.annotations.Nullable;

/// Takes care of blocks that are used on other streams than that of their free, for allocators that can't
/// themselves.
///
/// **Idea.** Any allocator is right about the stream of the free. So at the free that stream is made to wait for the
/// present ends of the others, and the allocator needs to know nothing of them.
///
/// **Steps.** 1. A use is offered to the allocator ([StreamUses]). 2. If it does not take it, it is noted here, and
/// the owner record is marked. 3. The free of a marked record comes here before it goes to the allocator; the frees
/// of all other blocks know nothing of this. 4. When a stream ends, its fence is taken once for all blocks that it
/// uses, and waited for at their frees.
///
/// **Invariant**: the blocks of a stream = the blocks noted here with it; a fence is open exactly while its stream
/// has ended and has blocks.
///
/// **Threads.** Any; one lock, held also across driver calls, so that no stream ends between being looked up and
/// being recorded on.
public final class BlockUses {
    /// No stream has this handle.
    private static final long NONE = Long.MIN_VALUE;

    /// A stream that exists.
    ///
    /// @param thread whose stream it is, for the per-thread default stream; else 0
    private record Name(int device, long stream, long thread) {}

    /// One stream that uses blocks, from the first use that was recorded to its end. What its handle names after that
    /// is another one of these: so nothing that was recorded for a stream is taken for its successor.
    private static final class StreamUse {
        final Name name;

        /// Blocks that are alive and used on it.
        int blocks;

        /// Whether the stream has ended; then `fence` stands behind its last work.
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

    private final Map<Long, Set<StreamUse>> usesOfBlocks = new HashMap<>();

    public BlockUses(Router router, StreamOrder order) {
        this.router = router;
        this.order = order;
        router.uses = this;
    }

    /// Notes that a live block is used on a stream too, by work enqueued until it is freed.
    ///
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual thread
    public void recordUse(long address, long stream) {
        Route route = router.routeOfBlock(address);
        Router.refuseThreadStream(route.device, stream);
        StreamUses maker = route.maker.extension(StreamUses.class).orElse(null);
        if (maker == null || !maker.recordUse(address, route.device, stream)) {
            note(address, name(route.device, stream));
        }
    }

    /// The mark comes first: a thread that frees a marked block waits here until the use is noted.
    private synchronized void note(long address, Name name) {
        if (!router.owners.markUsed(address)) {
            throw new UnknownAddressException(address);
        }
        StreamUse use = streams.computeIfAbsent(name, StreamUse::new);
        if (usesOfBlocks.computeIfAbsent(address, _ -> new HashSet<>()).add(use)) {
            use.blocks++;
        }
    }

    /// What was done about the uses of a block before its record goes.
    static final class Waits {
        private final Long address;
        private final StreamUse[] uses;

        /// One of the streams, if it is captured: nobody waits for the others then. Or [#NONE].
        final long captured;

        /// Whether the stream of the free waits for all of them.
        final boolean ordered;

        private Waits(Long address, StreamUse[] uses, long captured, boolean ordered) {
            this.address = address;
            this.uses = uses;
            this.captured = captured;
            this.ordered = ordered;
        }

        boolean isCaptured() {
            return captured != NONE;
        }
    }

    /// Makes the stream of a free wait for the other uses of a block, while the block has its record: an error of
    /// the Java heap leaves it as it was. Throws nothing else: if an order between streams can't be had, the host
    /// waits.
    ///
    /// A captured stream waits for no other, and no other for it: the block goes back only with the graph, behind
    /// all work of the context.
    synchronized Waits await(@Nullable CaptureRoutes captures, long address, int device, long stream) {
        Long key = address;
        StreamUse[] uses = usesOfBlocks.getOrDefault(key, Set.of()).toArray(StreamUse[]::new);
        long captured = captures != null ? capturedUser(uses, device, stream, captures) : NONE;
        boolean ordered = captured == NONE && order(uses, device, stream);
        return new Waits(key, uses, captured, ordered);
    }

    /// Forgets the block, before its address may come again.
    synchronized void taken(Waits waits) {
        usesOfBlocks.remove(waits.address);
    }

    /// Lets go of the streams that the block used.
    synchronized void end(Waits waits) {
        for (StreamUse use : waits.uses) {
            forget(use);
        }
    }

    /// Makes the stream of a free wait for the others, now that none of them is captured any more.
    ///
    /// @return false if the driver does not allow it now, as beside captures
    synchronized boolean order(Waits waits, int device, long stream) {
        return order(waits.uses, device, stream);
    }

    private boolean order(StreamUse[] uses, int device, long stream) {
        boolean ordered = true;
        Name freeing = name(device, stream);
        for (StreamUse use : uses) {
            if (use.ended) {
                ordered &= await(device, stream, use.fence);
            } else if (!use.name.equals(freeing)) {
                ordered &= awaitPresentEnd(use.name, stream);
            }
        }
        return ordered;
    }

    /// Returns [#NONE] if neither the stream of the free nor any other user is captured.
    private static long capturedUser(StreamUse[] uses, int device, long stream, CaptureRoutes captures) {
        if (captures.isCaptured(device, stream)) {
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
    private boolean awaitPresentEnd(Name used, long stream) {
        long fence = record(used);
        try {
            return await(used.device(), stream, fence);
        } finally {
            order.release(used.device(), fence);
        }
    }

    /// Returns false if the driver does not allow it now.
    private boolean await(int device, long stream, long fence) {
        return DeadContext.isDone(() -> order.await(device, stream, fence))
                || DeadContext.isDone(() -> order.synchronize(device, fence));
    }

    private long record(Name stream) {
        boolean canBeNamed = stream.thread() == 0
                || stream.thread() == Thread.currentThread().threadId();
        return canBeNamed ? order.record(stream.device(), stream.stream()) : order.recordAll(stream.device());
    }

    /// One block fewer is used on a stream.
    private void forget(StreamUse use) {
        if (--use.blocks > 0) {
            return;
        }
        if (use.ended) {
            order.release(use.name.device(), use.fence);
        } else {
            streams.remove(use.name, use); // what has the name now may be its successor
        }
    }

    /// Takes the fence of a stream that ends, for the blocks that it uses.
    public synchronized void streamClosing(int device, long stream) {
        StreamUse use = streams.remove(name(device, stream));
        if (use != null) {
            use.fence = record(use.name);
            use.ended = true;
        }
    }

    private static Name name(int device, long stream) {
        long thread =
                stream == Streams.PER_THREAD_DEFAULT ? Thread.currentThread().threadId() : 0;
        return new Name(device, stream == Streams.LEGACY_DEFAULT ? 0 : stream, thread);
    }
}
