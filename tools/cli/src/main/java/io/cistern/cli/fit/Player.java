package io.cistern.cli.fit;

import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.Work;
import io.cistern.cli.replay.PeakSnapshot;
import io.cistern.cli.replay.Replay;
import io.cistern.cli.replay.ReplaySession;
import io.cistern.cli.replay.Routing;
import io.cistern.cli.trace.Trace;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.observability.MemorySnapshot;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/// Plays a program through one allocator on simulated devices of any size. The program never pauses, so live memory
/// stays where it is.
///
/// @param trace the rows of one device
record Player(Trace trace, String spec, Catalog catalog) {
    /// How exactly the smallest device is found at best, which is the driver's granularity, and at worst.
    private static final long MIN_STEP = 2L << 20;

    private static final long MAX_STEP = 16L << 20;

    /// How many larger devices have to serve everything, too, up to one that has all that is reserved with enough
    /// memory.
    private static final int SURE_STEPS = 4;

    private static final long USUAL_BYTES = 64L << 30;

    /// Returns how exactly the smallest device is found for a program: about to a sixteenth of its peak, between 2 and
    /// 16 MiB.
    static long step(Trace trace) {
        return Long.highestOneBit(Math.clamp(trace.requestedPeakBytes() / 16, MIN_STEP, MAX_STEP));
    }

    /// Returns the most bytes that the allocator reserves if there is enough; empty if no device is large enough.
    OptionalLong reservedPeakBytes() {
        long enough = trace.requestedPeakBytes() > SimulatedGpu.MAX_CAPACITY_BYTES / 16
                ? SimulatedGpu.MAX_CAPACITY_BYTES
                : Math.max(16 * trace.requestedPeakBytes(), USUAL_BYTES);
        Failed failed = new Failed(false);
        ReplaySession.Outcome outcome = session(enough, failed, null).observed(Work.NONE);
        return failed.rows.isEmpty() ? outcome.reservedPeakBytes() : OptionalLong.empty();
    }

    List<Integer> failures(long capacityBytes) {
        Failed failed = new Failed(true);
        session(capacityBytes, failed, null).timed(Work.NONE);
        return failed.rows;
    }

    /// Returns the memory behind the allocation of a row.
    ///
    /// @param capacityBytes the memory of a device on which nothing fails
    MemorySnapshot behind(int row, long capacityBytes) {
        List<MemorySnapshot> taken = new ArrayList<>();
        session(capacityBytes, new Failed(true), new PeakSnapshot.Moment(row, taken::add))
                .observed(Work.NONE);
        return taken.getFirst();
    }

    private boolean completes(long capacityBytes) {
        Failed failed = new Failed(false);
        session(capacityBytes, failed, null).timed(Work.NONE);
        return failed.rows.isEmpty();
    }

    private record Failed(boolean goesOn, List<Integer> rows) implements Replay.Failures {
        Failed(boolean goesOn) {
            this(goesOn, new ArrayList<>());
        }

        @Override
        public boolean failed(int row, DeviceOutOfMemoryException failure) {
            rows.add(row);
            return goesOn;
        }
    }

    /// Returns the memory of a device on which everything is served, and on the next larger ones, too, but not on one
    /// that is smaller by [#step]. PyTorch's allocators refuse on some larger devices what they serve on a smaller
    /// one, because they give segments back at other moments.
    ///
    /// @param reservedPeakBytes what the allocator reserves if there is enough
    /// @return empty if no device is large enough
    OptionalLong smallestBytes(long reservedPeakBytes) {
        long step = step(trace);
        Map<Long, Boolean> known = new HashMap<>();
        LongPredicate completes = steps -> known.computeIfAbsent(steps, each -> completes(each * step));
        long fails = (trace.requestedPeakBytes() - 1) / step; // In steps, from here on.
        long serves = Math.max(fails + 1, Math.ceilDiv(reservedPeakBytes, step));
        while (!completes.test(serves)) {
            fails = serves;
            serves += Math.ceilDiv(serves, 16);
            if (serves > SimulatedGpu.MAX_CAPACITY_BYTES / step) {
                return OptionalLong.empty();
            }
        }
        long roomy = serves;
        // Allocators that give nothing back before they fail need all that they reserve, so that is tried first.
        for (long middle = serves - 1; serves - fails > 1; middle = (fails + serves) / 2) {
            if (completes.test(middle)) {
                serves = middle;
            } else {
                fails = middle;
            }
        }
        for (long larger = serves + 1; larger <= Math.min(serves + SURE_STEPS, roomy); larger++) {
            if (!completes.test(larger)) {
                serves = larger + 1;
            }
        }
        return OptionalLong.of(serves * step);
    }

    private ReplaySession session(long capacityBytes, Replay.Failures failures, PeakSnapshot.@Nullable Moment shown) {
        return new ReplaySession(
                trace,
                spec,
                Routing.Plan.WITHOUT_PAUSES,
                new ReplayDevice.Simulated(OptionalLong.of(capacityBytes)),
                catalog,
                1,
                () -> {},
                failures,
                null,
                shown);
    }
}
