package io.cistern.internal.routing;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// A lane that virtual threads share counts each of them once, and never shows more credit than was leased.
@Param(name = "bytes", gen = IntGen.class, conf = "1:3")
public class LaneModelTests {
    private final Lane lane = new Lane();
    private final Route route = new Route(
            0,
            0,
            "route",
            new Addresses(1 << 20, 1),
            new Meter(0, new ReservedBytes(1)),
            null,
            new Lanes(),
            _ -> {},
            () -> {});
    private int expectedBlocks;
    private long expectedBytes;

    @Operation
    public void allocate(@Param(name = "bytes") int byteSize) {
        lane.enter();
        Tally tally = lane.of(route);
        tally.begins();
        tally.allocated(byteSize);
        expectedBlocks++;
        expectedBytes += byteSize;
        lane.leave();
    }

    @Operation
    public void fail() {
        lane.enter();
        lane.of(route).begins();
        lane.of(route).failed();
        lane.leave();
    }

    @Validate
    public void countsAddUp() {
        TallySum sum = new TallySum();
        lane.addTo(sum, route);
        check(sum.allocations == expectedBlocks, "allocations", sum.allocations);
        check(sum.totalBytes == expectedBytes, "total bytes", sum.totalBytes);
        check(sum.requestedBytes == expectedBytes, "requested bytes", sum.requestedBytes);
        check(!lane.isAllocating(route), "attempts under way", 1);
    }

    private static void check(boolean holds, String what, long found) {
        if (!holds) {
            throw new AssertionError(what + ": " + found);
        }
    }

    @Test
    void countsAddUpInEveryInterleaving() {
        Interleavings.explore(LaneModelTests.class);
    }

    @Test
    void countsAddUpUnderRealThreads() {
        Interleavings.race(LaneModelTests.class);
    }
}
