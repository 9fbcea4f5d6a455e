package io.cistern.cli.replay;

import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.cli.common.PoolFigures;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.Work;
import io.cistern.cli.trace.Trace;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.catalog.Catalog;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The passes of one trace through one allocator, with memory, streams and an allocator of their own.
///
/// @param trace what to replay
/// @param spec the allocator
/// @param plan how allocations are routed
/// @param gpu where
/// @param catalog where the allocator is found
/// @param passCount how many passes, at least 1
/// @param onPass told of each pass done
/// @param onFailure told of each allocation that failed
/// @param series where observed passes write what is reserved over time, or null
public record ReplaySession(
        Trace trace,
        String spec,
        Routing.Plan plan,
        ReplayDevice gpu,
        Catalog catalog,
        int passCount,
        Runnable onPass,
        Consumer<DeviceOutOfMemoryException> onFailure,
        @Nullable PrintWriter series) {
    /// Passes that are timed, with nothing in them but the allocator and, for [Work#MEMSET], the fills.
    public Outcome timed(Work work) {
        return run(work, false);
    }

    /// Passes of the same work that are looked at instead: memory reserved and, for [Work#CHECK], contents.
    public Outcome observed(Work work) {
        return run(work, true);
    }

    /// The same with another number of passes, of which nobody is told.
    ReplaySession unseen(int passes) {
        return new ReplaySession(trace, spec, plan, gpu, catalog, passes, () -> {}, _ -> {}, null);
    }

    private Outcome run(Work work, boolean observed) {
        CudaDriver driver = gpu.driver();
        long[] streams = new long[trace.streamCount()];
        Arrays.setAll(streams, _ -> driver.streams().create(gpu.ordinal()));
        try (ContentCheck check = work == Work.CHECK ? new ContentCheck(driver, gpu.ordinal(), streams) : null) {
            long freeBytesBefore = driver.memory().freeBytes(gpu.ordinal());
            Outcome outcome = withAllocator(driver, streams, blockWork(work, driver, check), observed, freeBytesBefore);
            driver.devices().synchronize(gpu.ordinal());
            return outcome.ended(
                    freeBytesBefore - driver.memory().freeBytes(gpu.ordinal()), check == null ? 0 : check.mismatches());
        } finally {
            for (long stream : streams) {
                driver.streams().destroy(gpu.ordinal(), stream);
            }
            gpu.release(driver);
        }
    }

    private @Nullable BlockWork blockWork(Work work, CudaDriver driver, @Nullable ContentCheck check) {
        return switch (work) {
            case NONE -> null;
            case MEMSET ->
                (_, address, byteSize, stream) ->
                        driver.copies().fillBytes(gpu.ordinal(), address, (byte) 1, byteSize, stream);
            case CHECK -> check;
        };
    }

    private Outcome withAllocator(
            CudaDriver driver, long[] streams, @Nullable BlockWork work, boolean observed, long freeBytesBefore) {
        try (DeviceMemory memory = gpu.open(driver, catalog)) {
            Routing routing = new Routing(memory, spec, gpu.ordinal(), streams, plan);
            if (!observed) {
                return outcome(passes(memory, routing, streams, work), OptionalLong.empty(), routing, gpu.ordinal());
            }
            ReservedMeter meter = new ReservedMeter(driver, gpu.ordinal(), routing, plan, freeBytesBefore);
            BlockWork measures = series == null ? meter : meter.then(series(series, meter));
            List<Replay.Pass> passes = passes(memory, routing, streams, work == null ? measures : measures.then(work));
            return outcome(passes, OptionalLong.of(meter.peakBytes()), routing, gpu.ordinal());
        }
    }

    private ReservedSeries series(PrintWriter out, ReservedMeter meter) {
        String labels = String.join(",", trace.name(), '"' + spec + '"', gpu.label());
        return new ReservedSeries(out, labels, trace.operations(), meter::reservedBytes);
    }

    private static Outcome outcome(
            List<Replay.Pass> passes, OptionalLong reservedPeakBytes, Routing routing, int device) {
        return new Outcome(
                passes,
                reservedPeakBytes,
                routing.statistics(),
                routing.counts(),
                PoolFigures.of(routing.open(), device),
                0,
                0);
    }

    private List<Replay.Pass> passes(DeviceMemory memory, Routing routing, long[] streams, @Nullable BlockWork work) {
        try (Replay replay = replay(memory, routing, streams, work)) {
            List<Replay.Pass> passes = new ArrayList<>();
            for (int i = 0; i < passCount; i++) {
                passes.add(replay.pass());
                onPass.run();
            }
            return passes;
        }
    }

    private Replay replay(DeviceMemory memory, Routing routing, long[] streams, @Nullable BlockWork work) {
        return switch (plan.layer()) {
            case RAW -> new Replay(trace, memory, routing, gpu.ordinal(), streams, work, onFailure);
            case BUFFER -> new BufferReplay(trace, memory, routing, gpu.ordinal(), streams, work, onFailure);
        };
    }

    /// What came of the passes.
    ///
    /// @param passes what each took
    /// @param reservedPeakBytes the most bytes reserved, if they were observed
    /// @param metered what the framework counted over all of them
    /// @param routed how often allocators were exchanged, and what became of them
    /// @param pools what the driver's pools were like in the end, if memory came from those
    /// @param unreturnedBytes bytes of the device that closing the allocator did not give back
    /// @param mismatches words of block contents found changed
    public record Outcome(
            List<Replay.Pass> passes,
            OptionalLong reservedPeakBytes,
            AllocatorStatistics metered,
            Routing.Counts routed,
            Optional<PoolFigures> pools,
            long unreturnedBytes,
            long mismatches) {
        /// The same, with what is known only after the allocator was closed.
        Outcome ended(long unreturned, long changed) {
            return new Outcome(passes, reservedPeakBytes, metered, routed, pools, unreturned, changed);
        }
    }
}
