package io.cistern.cli.replay;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Decides which allocator serves each operation of a replay, by the framework's own routing: allocations go
/// through [DeviceMemory#allocate], and this class chooses the current allocator and opens scopes.
///
/// - `--swap-every N`: every N operations, a fresh allocator of the same spec replaces the current
///   one, which drains.
/// - `--scopes`: each stream has an allocator of the same spec as its pool. The replay enters the pool for each
///   run of the stream's rows and leaves it after them. A swap then replaces the pool of the row's stream.
///
/// **Invariants.** Allocators opened = present + retired + drained; swaps = retired + drained.
public final class Routing {
    private final DeviceMemory memory;
    private final String spec;
    private final ReplayStreams streams;
    private final Plan plan;
    /// The allocators for new blocks: one for each stream, or the current one alone.
    private final @Nullable Allocator[] present;
    /// Replaced allocators that still have live blocks.
    private final List<Allocator> retired = new ArrayList<>();

    private AllocatorStatistics drained = new AllocatorStatistics(0, 0, 0, 0, 0, 0, OptionalLong.of(0));
    private @Nullable Scope scope;
    private int scopeStream = -1;
    private long operations;
    private long swaps;

    /// The routing that the command line asks for.
    ///
    /// @param swapEvery replaces the allocator after that many operations; 0 for never
    /// @param scopes whether each stream has a pool
    /// @param layer the form in which blocks are held
    /// @param ahead how many rows a thread may be ahead of the slowest, if the trace has several threads
    /// @param pauses whether the program pauses when memory runs out, so that live memory may move
    public record Plan(int swapEvery, boolean scopes, Layer layer, int ahead, boolean pauses) {
        /// Threads get about this far while another one wakes up; and it is few enough that the live blocks
        /// stay like those of the recorded program.
        static final int USUAL_AHEAD = 256;
        /// One allocator from beginning to end.
        public static final Plan ONE_ALLOCATOR = new Plan(0, false, Layer.RAW, USUAL_AHEAD, true);
        /// The same of a program that never pauses, as one that another allocator served.
        public static final Plan WITHOUT_PAUSES = new Plan(0, false, Layer.RAW, USUAL_AHEAD, false);

        /// Returns whether one allocator serves plain addresses from beginning to end.
        boolean isPlain() {
            return swapEvery == 0 && !scopes && layer == Layer.RAW;
        }
    }

    /// Counts of exchanged allocators and pools.
    ///
    /// @param swaps allocators that were replaced
    /// @param drained replaced allocators whose memory is back with the driver
    /// @param pools streams that had a pool
    record Counts(long swaps, long drained, int pools) {
        static final Counts NONE = new Counts(0, 0, 0);

        /// Returns whether a single allocator served everything.
        boolean ofOneAllocator() {
            return swaps == 0 && pools <= 1;
        }
    }

    Routing(DeviceMemory memory, String spec, ReplayStreams streams, Plan plan) {
        this.memory = memory;
        this.spec = spec;
        this.streams = streams;
        this.plan = plan;
        present = new Allocator[plan.scopes() ? streams.handles().length : 1];
        if (!plan.scopes()) {
            present[0] = openCurrent();
        }
    }

    private Allocator openCurrent() {
        Allocator opened = memory.open(spec);
        memory.currents().set(opened);
        return opened;
    }

    /// Prepares for the next operation on a stream, which is given by its number.
    void before(int stream) {
        if (plan.swapEvery() > 0) {
            if (operations > 0 && operations % plan.swapEvery() == 0) {
                swap(plan.scopes() ? stream : 0);
            }
            operations++;
        }
        if (plan.scopes() && stream != scopeStream) {
            leave();
            enter(stream);
        }
    }

    private void enter(int stream) {
        Allocator pool = present[stream];
        if (pool == null) {
            pool = memory.open(spec);
            present[stream] = pool;
        }
        scope = pool.enter(ScopeOptions.all().stream(streams.ordinal(stream), streams.handles()[stream]));
        scopeStream = stream;
    }

    void leave() {
        if (scope != null) {
            scope.close();
            scope = null;
            scopeStream = -1;
        }
    }

    private void swap(int index) {
        Allocator former = present[index];
        if (former == null) {
            return; // The stream has no pool yet.
        }
        if (plan.scopes()) {
            leave();
            present[index] = null;
        } else {
            present[index] = openCurrent();
        }
        former.close();
        swaps++;
        retired.add(former);
        sumDrained();
    }

    /// Adds up the statistics of drained allocators and drops them from the list.
    private void sumDrained() {
        for (Iterator<Allocator> each = retired.iterator(); each.hasNext(); ) {
            Allocator allocator = each.next();
            if (allocator.isDrained()) {
                drained = sum(drained, statistics(allocator));
                each.remove();
            }
        }
    }

    /// Returns the allocators that are open or still have live blocks.
    public Stream<Allocator> open() {
        return Stream.concat(Arrays.stream(present).flatMap(Stream::ofNullable), retired.stream());
    }

    private AllocatorStatistics statistics(Allocator allocator) {
        return Arrays.stream(streams.ordinals())
                .mapToObj(allocator::statistics)
                .reduce(Routing::sum)
                .orElseThrow();
    }

    /// Returns the framework's counts over all allocators and devices; peaks are added up.
    public AllocatorStatistics statistics() {
        sumDrained();
        return open().map(this::statistics).reduce(drained, Routing::sum);
    }

    Counts counts() {
        sumDrained();
        int pools = plan.scopes()
                ? (int) Arrays.stream(present).filter(pool -> pool != null).count()
                : 0;
        return new Counts(swaps, swaps - retired.size(), pools);
    }

    private static AllocatorStatistics sum(AllocatorStatistics one, AllocatorStatistics other) {
        return new AllocatorStatistics(
                one.allocations() + other.allocations(),
                one.frees() + other.frees(),
                one.liveBlocks() + other.liveBlocks(),
                one.requestedBytes() + other.requestedBytes(),
                one.requestedPeakBytes() + other.requestedPeakBytes(),
                one.requestedTotalBytes() + other.requestedTotalBytes(),
                OptionalLong.empty());
    }
}
