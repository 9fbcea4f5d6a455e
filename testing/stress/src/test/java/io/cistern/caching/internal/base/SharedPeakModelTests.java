package io.cistern.caching.internal.base;

import io.cistern.caching.BlockPlaces;
import io.cistern.internal.routing.Interleavings;
import java.util.concurrent.atomic.AtomicLong;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// Two gauges, each of one thread: the peak that they share is never below what was live at once, and above it by
/// two steps a gauge at most. So is that of the whole that theirs is a part of.
@Param(name = "amount", gen = IntGen.class, conf = "1:40")
public class SharedPeakModelTests {
    private static final int CHUNK = 16;

    private final SharedPeak whole = new SharedPeak();
    private final SharedPeak peak = new SharedPeak(whole);
    private final Gauge[] gauges = {new Gauge(peak, CHUNK), new Gauge(peak, CHUNK)};
    /// Never more than the gauges show.
    private final Most atLeast = new Most();
    /// Never less.
    private final Most atMost = new Most();

    /// A sum and the most it was.
    private static final class Most {
        private final AtomicLong sum = new AtomicLong();
        private final AtomicLong most = new AtomicLong();

        void add(long amount) {
            long now = sum.addAndGet(amount);
            most.accumulateAndGet(now, Math::max);
        }
    }

    private void add(int gauge, int amount) {
        atMost.add(amount);
        gauges[gauge].add(amount);
        atLeast.add(amount);
    }

    private void remove(int gauge, int amount) {
        long removed = Math.min(amount, gauges[gauge].current());
        atLeast.add(-removed);
        gauges[gauge].remove(removed);
        atMost.add(-removed);
    }

    @Operation(nonParallelGroup = "first")
    public void addToFirst(@Param(name = "amount") int amount) {
        add(0, amount);
    }

    @Operation(nonParallelGroup = "first")
    public void removeFromFirst(@Param(name = "amount") int amount) {
        remove(0, amount);
    }

    @Operation(nonParallelGroup = "second")
    public void addToSecond(@Param(name = "amount") int amount) {
        add(1, amount);
    }

    @Operation(nonParallelGroup = "second")
    public void removeFromSecond(@Param(name = "amount") int amount) {
        remove(1, amount);
    }

    @Validate
    public void isNeitherTooLowNorFarTooHigh() {
        for (SharedPeak each : new SharedPeak[] {peak, whole}) {
            BlockPlaces.require(each.peak() >= atLeast.most.get(), "a peak below what was live");
            BlockPlaces.require(
                    each.peak() <= atMost.most.get() + 2L * gauges.length * CHUNK, "a peak far above what was live");
        }
    }

    @Test
    void isNeverTooLowInAnyInterleaving() {
        Interleavings.explore(SharedPeakModelTests.class, 5);
    }

    @Test
    void isNeverTooLowUnderRealThreads() {
        Interleavings.race(SharedPeakModelTests.class);
    }
}
