package io.cistern.internal.capture;

import io.cistern.internal.routing.Router;
import io.cistern.internal.threads.NodeQueue;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongPredicate;
import java.util.function.Predicate;
import java.util.stream.LongStream;

/// The checkpoints of some graphs' memory, with the blocks that they noted. A noted block that the program
/// frees is kept, like a workspace that was freed in a capture. So its allocator hands its address to nobody,
/// and the block can be made alive again.
///
/// A checkpoint is a sorted array of addresses, told apart by identity.
///
/// **Threads.** Any. Frees read the noted addresses without a lock.
public final class Checkpoints {
    private final GraphBlocks memory;
    private final Router router;
    private final BlockHolders holders;
    private final List<long[]> open = new ArrayList<>();

    /// The addresses that any open checkpoint noted, sorted.
    private volatile long[] noted = {};

    Checkpoints(GraphBlocks memory, Router router, BlockHolders holders) {
        this.memory = memory;
        this.router = router;
        this.holders = holders;
    }

    boolean hasNoted(long address) {
        return isIn(noted, address);
    }

    private static boolean isIn(long[] addresses, long address) {
        return Arrays.binarySearch(addresses, address) >= 0;
    }

    /// Takes a checkpoint of the live blocks.
    ///
    /// @throws IllegalStateException if a stream is captured into this memory, or its graphs are gone
    public synchronized long[] take() {
        requireRest();
        long[] live = live();
        for (long address : live) {
            holders.own(address, memory);
        }
        open.add(live);
        try {
            noted = merged(_ -> true);
        } catch (Throwable failure) {
            open.removeLast();
            throw failure;
        }
        return live;
    }

    private void requireRest() {
        if (memory.isGone()) {
            throw new IllegalStateException("the graphs of this memory no longer exist");
        }
        if (memory.isCapturedInto()) {
            throw new IllegalStateException("a stream is being captured into this memory: end the capture first");
        }
    }

    private long[] live() {
        LongStream.Builder live = LongStream.builder();
        router.forEachLive((address, _, route) -> {
            if (memory.owns(address, route)) {
                live.add(address);
            }
        });
        return live.build().sorted().toArray();
    }

    /// Returns the addresses that some open checkpoints noted, sorted.
    private long[] merged(Predicate<long[]> which) {
        return open.stream()
                .filter(which)
                .flatMapToLong(Arrays::stream)
                .sorted()
                .toArray();
    }

    /// Makes the noted blocks that the program has freed since alive again.
    ///
    /// @return their addresses
    /// @throws IllegalStateException if a stream is captured into this memory, its graphs are gone, the
    ///     checkpoint is closed, a block is alive that it did not note, or a noted block is kept for other
    ///     graphs
    public synchronized List<Long> restore(long[] checkpoint) {
        if (!open.contains(checkpoint)) {
            throw new IllegalStateException("the checkpoint is closed");
        }
        requireRest();
        long[] live = live();
        long others =
                Arrays.stream(live).filter(each -> !isIn(checkpoint, each)).count();
        if (others > 0) {
            throw new IllegalStateException(
                    "live blocks of this memory that are not in the checkpoint: " + others + "; free them first");
        }
        List<Long> again = Arrays.stream(checkpoint)
                .filter(each -> !isIn(live, each))
                .boxed()
                .toList();
        memory.revive(again);
        return again;
    }

    /// Closes a checkpoint. The blocks that only it kept go back after all work, when nothing is captured.
    ///
    /// @param captures those of the device memory
    /// @throws io.cistern.cuda.CudaException if the driver refuses to order that; the blocks go back with the
    ///     graphs then
    @SuppressWarnings("ReferenceEquality") // they are told apart by identity
    public void close(long[] checkpoint, Captures captures) {
        LongPredicate onlyHere = address -> isIn(checkpoint, address) && !hasNoted(address);
        var givingBack = new NodeQueue.Node<Runnable>(() -> memory.giveBack(onlyHere));
        synchronized (this) {
            long[] others = merged(each -> each != checkpoint);
            if (!open.remove(checkpoint)) {
                return;
            }
            noted = others;
        }
        captures.whenNoneIsUnderWay(givingBack);
    }
}
