package io.cistern.internal.routing;

import io.cistern.internal.events.Observers;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// Counters that virtual threads share count each of them once, and never show more credit than was
/// leased.
@Param(name = "bytes", gen = IntGen.class, conf = "1:3")
public class ThreadCountersModelTests {
    private final ThreadCounters counters = new ThreadCounters(false);
    private final Route route = new Route(
            0,
            0,
            "route",
            new Addresses(1 << 20, 1),
            new Meter(0, new DeviceMeters(), new ReservedBytes("test", 1, new Observers())),
            null,
            ThreadCounters.table(_ -> {}),
            _ -> {},
            () -> {});
    private int expectedBlocks;
    private long expectedBytes;

    @Operation
    public void allocate(@Param(name = "bytes") int byteSize) {
        counters.enterShared();
        Tally tally = counters.of(route);
        tally.begins();
        tally.allocated(byteSize);
        expectedBlocks++;
        expectedBytes += byteSize;
        counters.leave();
    }

    @Operation
    public void fail() {
        counters.enterShared();
        counters.of(route).begins();
        counters.of(route).failed();
        counters.leave();
    }

    @Validate
    public void countsAddUp() {
        TallySum sum = new TallySum();
        Tally tally = counters.find(route);
        if (tally != null) {
            tally.addTo(sum);
        }
        check(sum.allocations == expectedBlocks, "allocations", sum.allocations);
        check(sum.totalBytes == expectedBytes, "total bytes", sum.totalBytes);
        check(sum.requestedBytes == expectedBytes, "requested bytes", sum.requestedBytes);
        check(!route.isAllocating(counters), "attempts under way", 1);
    }

    private static void check(boolean holds, String what, long found) {
        if (!holds) {
            throw new AssertionError(what + ": " + found);
        }
    }

    @Test
    void countsAddUpInEveryInterleaving() {
        Interleavings.explore(ThreadCountersModelTests.class);
    }

    @Test
    void countsAddUpUnderRealThreads() {
        Interleavings.race(ThreadCountersModelTests.class);
    }
}
