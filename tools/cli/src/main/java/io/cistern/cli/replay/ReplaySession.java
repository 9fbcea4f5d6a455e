package io.cistern.cli.replay;

import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import io.cistern.cli.common.PoolFigures;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.Work;
import io.cistern.cli.trace.Trace;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.catalog.Catalog;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The passes of one trace through one allocator, with their own memory, streams and allocator.
///
/// @param plan how allocations are routed
/// @param passCount number of passes, at least 1
/// @param onPass called after each pass
/// @param onFailure hears of failed allocations
/// @param series receives the reserved bytes over time of observed passes, or null
/// @param shown receives a snapshot of the first observed pass, or null
public record ReplaySession(
        Trace trace,
        String spec,
        Routing.Plan plan,
        ReplayDevice gpu,
        Catalog catalog,
        int passCount,
        Runnable onPass,
        Replay.Failures onFailure,
        @Nullable PrintWriter series,
        PeakSnapshot.@Nullable Moment shown) {
    /// Runs timed passes, which contain only the allocator's calls and, for [Work#MEMSET], the fills.
    public Outcome timed(Work work) {
        return run(work, false);
    }

    /// Runs observed passes of the same work, for the reserved memory and, for [Work#CHECK], the
    /// contents of blocks.
    public Outcome observed(Work work) {
        return run(work, true);
    }

    /// Returns the same session with another number of passes that reports nothing.
    ReplaySession unseen(int passes) {
        return new ReplaySession(trace, spec, plan, gpu, catalog, passes, () -> {}, (_, _) -> true, null, null);
    }

    private Outcome run(Work work, boolean observed) {
        int devices = trace.origins().deviceCount();
        CudaDriver driver = gpu.driver(devices, work == Work.CHECK ? ContentCheck.DEVICE_BYTES : 0);
        try (ReplayStreams streams = ReplayStreams.create(driver, trace, gpu.ordinal());
                ContentCheck.OfAll checks = work == Work.CHECK ? ContentCheck.OfAll.on(streams) : null;
                ReplayDevice.Rest _ = gpu.holdRest(devices)) {
            long[] freeBytesBefore = streams.freeBytes();
            Outcome outcome = withAllocator(streams, blockWork(work, streams, checks), observed, freeBytesBefore);
            streams.synchronize();
            return outcome.ended(
                    Arrays.stream(freeBytesBefore).sum()
                            - Arrays.stream(streams.freeBytes()).sum(),
                    checks == null ? 0 : checks.mismatches());
        } finally {
            gpu.release(driver);
        }
    }

    private static BlockWork[] blockWork(Work work, ReplayStreams streams, ContentCheck.@Nullable OfAll checks) {
        BlockWork[] works = new BlockWork[streams.ordinals().length];
        for (int device = 0; device < works.length; device++) {
            works[device] = checks != null
                    ? checks.byDevice().get(device)
                    : work == Work.MEMSET ? memset(streams.driver(), streams.ordinals()[device]) : BlockWork.NONE;
        }
        return works;
    }

    private static BlockWork memset(CudaDriver driver, int ordinal) {
        return (op, _, address, byteSize, stream) -> {
            if (op == Trace.ALLOCATE) {
                driver.copies().fillBytes(ordinal, address, (byte) 1, byteSize, stream);
            }
        };
    }

    private Outcome withAllocator(ReplayStreams streams, BlockWork[] works, boolean observed, long[] freeBytesBefore) {
        try (DeviceMemory memory = gpu.open(streams.driver(), catalog);
                Registration _ = plan.pauses() ? memory.listeners().onCompaction(pause(works)) : () -> {}) {
            Routing routing = new Routing(memory, spec, streams, plan);
            if (!observed) {
                return outcome(passes(memory, routing, streams, works), OptionalLong.empty(), routing, streams);
            }
            List<ReservedMeter> meters = IntStream.range(0, works.length)
                    .mapToObj(device -> new ReservedMeter(
                            streams.driver(), streams.ordinals()[device], routing, plan, freeBytesBefore[device]))
                    .toList();
            PeakSnapshot peak = shown == null ? null : new PeakSnapshot(memory, trace, shown);
            observe(works, meters, peak == null ? BlockWork.NONE : peak);
            List<Replay.Pass> passes = passes(memory, routing, streams, works);
            if (peak != null) {
                peak.handOver();
            }
            long peakBytes = meters.stream().mapToLong(ReservedMeter::peakBytes).sum();
            return outcome(passes, OptionalLong.of(peakBytes), routing, streams);
        }
    }

    /// Returns how the replay rests. One thread does all work, or threads do theirs under the shared side of a
    /// lock from now on.
    private WorkPause pause(BlockWork[] works) {
        if (trace.origins().threadCount() == 1) {
            return WorkPause.ofOneThread();
        }
        ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        Arrays.setAll(works, device -> works[device].under(lock.readLock()));
        return WorkPause.of(lock);
    }

    /// Puts the measurements before the work on blocks. They count across threads, so several
    /// threads take turns.
    private void observe(BlockWork[] works, List<ReservedMeter> meters, BlockWork peak) {
        Lock lock = new ReentrantLock();
        BlockWork overTime = series == null ? BlockWork.NONE : series(series, meters);
        Arrays.setAll(works, device -> {
            BlockWork all = meters.get(device).then(overTime).then(peak).then(works[device]);
            return trace.origins().threadCount() == 1 ? all : all.under(lock);
        });
    }

    private ReservedSeries series(PrintWriter out, List<ReservedMeter> meters) {
        String labels = String.join(",", trace.name(), '"' + spec + '"', gpu.label());
        return new ReservedSeries(
                out,
                labels,
                trace.operations(),
                () -> meters.stream().mapToLong(ReservedMeter::reservedBytes).sum());
    }

    private static Outcome outcome(
            List<Replay.Pass> passes, OptionalLong reservedPeakBytes, Routing routing, ReplayStreams streams) {
        return new Outcome(
                passes,
                reservedPeakBytes,
                routing.statistics(),
                routing.counts(),
                PoolFigures.of(routing.open(), streams.ordinals()),
                0,
                0);
    }

    private List<Replay.Pass> passes(DeviceMemory memory, Routing routing, ReplayStreams streams, BlockWork[] works) {
        try (Walk walk = walk(memory, routing, streams, works)) {
            List<Replay.Pass> passes = new ArrayList<>();
            for (int i = 0; i < passCount; i++) {
                passes.add(walk.pass(memory));
                onPass.run();
            }
            return passes;
        }
    }

    private Walk walk(DeviceMemory memory, Routing routing, ReplayStreams streams, BlockWork[] works) {
        int threads = trace.origins().threadCount();
        Trace played = threads == 1 ? trace : trace.withOwnSlots();
        SpreadReplay.Factory factory = (device, blocks) -> {
            int ordinal = streams.ordinals()[device];
            return new Replay(played, memory, routing, ordinal, streams.handles(), blocks, works[device], onFailure);
        };
        return threads == 1 && works.length == 1
                ? factory.replay(0, Replay.Blocks.of(played, plan.layer()))
                : new SpreadReplay(played, streams, plan.ahead(), plan.layer(), factory);
    }

    /// The outcome of the passes.
    ///
    /// @param reservedPeakBytes the most bytes reserved, if the passes were observed
    /// @param metered the framework's counts over all passes
    /// @param routed how often allocators were exchanged, and how many of them drained
    /// @param pools the state of the driver's pools at the end, if memory came from them
    /// @param unreturnedBytes bytes of the device that closing the allocator did not give back
    /// @param mismatches words of block contents that were found changed
    public record Outcome(
            List<Replay.Pass> passes,
            OptionalLong reservedPeakBytes,
            AllocatorStatistics metered,
            Routing.Counts routed,
            Optional<PoolFigures> pools,
            long unreturnedBytes,
            long mismatches) {
        /// Adds the figures that are known only after the allocator was closed.
        Outcome ended(long unreturned, long changed) {
            return new Outcome(passes, reservedPeakBytes, metered, routed, pools, unreturned, changed);
        }
    }
}
