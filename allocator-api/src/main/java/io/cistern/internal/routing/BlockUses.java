package io.cistern.internal.routing;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.StreamUses;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.IntConsumer;
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

    /// In place of a fence: the driver gave none, and did not let the host wait either.
    private static final long UNMARKED = NONE;

    private final Router router;
    private final StreamOrder order;
    private final IntConsumer waitForDevice;

    /// Streams that exist and use blocks.
    private final Map<StreamUse.Name, StreamUse> streams = new HashMap<>();

    private final Map<Long, Set<StreamUse>> usesOfBlocks = new HashMap<>();

    /// Takes care of the blocks of a router.
    ///
    /// @param waitForDevice waits on the host for all work of a device: for streams that can't be recorded on
    public BlockUses(Router router, StreamOrder order, IntConsumer waitForDevice) {
        this.router = router;
        this.order = order;
        this.waitForDevice = waitForDevice;
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

    private synchronized void note(long address, StreamUse.Name name) {
        StreamUse use = streams.computeIfAbsent(name, StreamUse::new);
        if (usesOfBlocks.computeIfAbsent(address, _ -> new HashSet<>()).add(use)) {
            use.blocks++;
        }
        if (!router.markUsed(address)) {
            take(address).forEach(this::forget);
            throw new UnknownAddressException(address);
        }
    }

    private Set<StreamUse> take(long address) {
        Set<StreamUse> uses = usesOfBlocks.remove(address);
        return uses != null ? uses : Set.of();
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

    /// Makes the stream of a free wait for the other uses of a block, while it has its record: an error of the Java
    /// heap leaves the block as it was. Does not throw else: where an order between streams can't be had, the host
    /// waits.
    ///
    /// A captured stream waits for nobody and nobody for it: what it uses goes back only with the graph, behind all
    /// work of the context.
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

    /// Ends what was begun for it.
    synchronized void end(Waits waits) {
        for (StreamUse use : waits.uses) {
            forget(use);
        }
    }

    /// Makes the stream of a free wait, as [#await], for a block whose stream is not captured any more.
    ///
    /// @return false if the driver does not allow it now, as beside captures
    synchronized boolean order(Waits waits, int device, long stream) {
        return order(waits.uses, device, stream);
    }

    private boolean order(StreamUse[] uses, int device, long stream) {
        boolean ordered = true;
        StreamUse.Name freeing = name(device, stream);
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
    private boolean awaitPresentEnd(StreamUse.Name used, long stream) {
        Long fence = record(used);
        if (fence == null) {
            return true;
        }
        boolean ordered = await(used.device(), stream, fence);
        release(used.device(), fence);
        return ordered;
    }

    /// Returns false if the driver does not allow it now.
    private boolean await(int device, long stream, long fence) {
        try {
            if (fence != UNMARKED) {
                order.await(device, stream, fence);
                return true;
            }
        } catch (CudaException endedUnannounced) {
            // As without a fence.
        }
        return waitForDevice(device);
    }

    /// Marks the present end of a stream; of all beside captures, where the host can't wait for one that can't be
    /// marked.
    ///
    /// @return null if it could not be marked and its work is done; [#UNMARKED] if the host can't wait either
    private @Nullable Long record(StreamUse.Name stream) {
        try {
            if (stream.thread() == 0
                    || stream.thread() == Thread.currentThread().threadId()) {
                return order.record(stream.device(), stream.stream());
            }
        } catch (CudaException endedUnannounced) {
            // As for another thread's.
        }
        return waitForDevice(stream.device()) ? null : recordAll(stream.device());
    }

    private @Nullable Long recordAll(int device) {
        try {
            return order.recordAll(device);
        } catch (CudaException refusal) {
            return waitForDevice(device) ? null : UNMARKED; // captures may have ended since
        }
    }

    /// Waits on the host for all work of a device.
    ///
    /// @return false if the driver refuses, as beside captures
    private boolean waitForDevice(int device) {
        try {
            waitForDevice.accept(device);
            return true;
        } catch (CudaException refusal) {
            return refusal.result().endsContext(); // then nothing runs any more
        }
    }

    private void release(int device, long fence) {
        try {
            if (fence != UNMARKED) {
                order.release(device, fence);
            }
        } catch (CudaException dead) {
            // It went with its context.
        }
    }

    /// One block fewer is used on a stream.
    private void forget(StreamUse use) {
        if (--use.blocks > 0) {
            return;
        }
        if (use.ended) {
            release(use.name.device(), use.fence);
        } else {
            streams.remove(use.name, use); // what has the name now may be its successor
        }
    }

    /// Takes the fence of a stream that ends, for the blocks that it uses.
    public synchronized void streamClosing(int device, long stream) {
        StreamUse use = streams.remove(name(device, stream));
        if (use != null) {
            Long fence = record(use.name);
            if (fence == null) {
                usesOfBlocks.values().forEach(uses -> uses.remove(use));
            } else {
                use.fence = fence;
                use.ended = true;
            }
        }
    }

    private static StreamUse.Name name(int device, long stream) {
        long thread =
                stream == Streams.PER_THREAD_DEFAULT ? Thread.currentThread().threadId() : 0;
        return new StreamUse.Name(device, stream == Streams.LEGACY_DEFAULT ? 0 : stream, thread);
    }
}
