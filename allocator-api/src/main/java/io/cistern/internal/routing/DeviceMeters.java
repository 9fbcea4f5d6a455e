package io.cistern.internal.routing;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/// The meters of one device: the most bytes that all its allocators together had requested at one moment since the
/// last reset, and the [Threshold]s that meters count for.
///
/// **The peak.** This does for meters what a [Meter] does for threads. While the leases of all meters
/// together stay below a limit a little above the most bytes known, the sum is not checked. A thread that
/// moves a meter beyond it makes all meters take their leases back, which gives the sum at a known moment.
/// So the peak is at most that little too high, and never too low.
///
/// **Thresholds.** A meter that counts for none has an empty list. So thresholds cost nothing if there are
/// none, and otherwise only when a thread uses its meter, every few MiB.
///
/// **Threads.** Any. Used only where a meter moves, every few KiB or MiB.
final class DeviceMeters {
    /// How much too high the peak may be, as a shift: less than 2 %.
    private static final int SLACK_SHIFT = 6;

    /// How much too high it may be for a small sum, at first and at most.
    private static final long SLACK_BYTES = 1 << 10;

    private static final long MAX_SLACK_BYTES = 4 << 20;

    /// Replaced under the lock of this.
    private volatile Meter[] meters = {};

    /// The leases of all meters may reach this without a check. Written under the lock of this.
    private volatile long limit;

    /// The most leases seen below the limit, or bytes known at a moment.
    private volatile AtomicLong peak = new AtomicLong();

    // Guarded by this.
    private long reached;
    private long slack = SLACK_BYTES;
    private boolean anyDrained;
    private final List<Threshold> thresholds = new ArrayList<>();

    synchronized void opened(Meter meter) {
        if (meters.length == 1) { // the first one did not check the sum
            long known = meters[0].peakBytes(meters[0].sum());
            Meter.note(peak, known);
            reach(known);
        }
        Meter[] more = Arrays.copyOf(meters, meters.length + 1);
        more[meters.length] = meter;
        meters = more;
        arrange();
    }

    synchronized void drained(Meter meter) {
        if (meters.length == 1) {
            Meter.note(peak, meter.peakBytes(meter.sum()));
        }
        anyDrained = true;
        meters = Stream.of(meters).filter(each -> each != meter).toArray(Meter[]::new);
        if (meter.thresholds.length > 0) {
            meter.thresholds = new Threshold[0];
            arrange();
        }
    }

    synchronized void add(Threshold threshold) {
        thresholds.add(threshold);
        arrange();
    }

    synchronized void remove(Threshold threshold) {
        thresholds.remove(threshold);
        Stream.of(meters).forEach(this::arrange);
    }

    private void arrange() {
        if (!thresholds.isEmpty()) {
            for (Threshold each : thresholds) {
                each.meters = Stream.of(meters).filter(each::counts).toArray(Meter[]::new);
            }
            Stream.of(meters).forEach(this::arrange);
        }
    }

    private void arrange(Meter meter) {
        meter.thresholds =
                thresholds.stream().filter(threshold -> threshold.counts(meter)).toArray(Threshold[]::new);
    }

    /// Called when the leases of a meter may have risen.
    void moved() {
        Meter[] all = meters;
        if (all.length < 2) {
            return;
        }
        long leased = leased(all);
        AtomicLong known = peak;
        if (leased <= limit) {
            Meter.note(known, leased);
        } else {
            look();
        }
    }

    private static long leased(Meter[] all) {
        long leased = 0;
        for (Meter meter : all) {
            leased += meter.leased();
        }
        return leased;
    }

    private synchronized void look() {
        Meter[] all = meters;
        if (leased(all) > limit) {
            long bytes = settled(all);
            Meter.note(peak, bytes);
            if (bytes <= reached) { // threads want to lease more than they use at once
                slack = Math.min(2 * slack, MAX_SLACK_BYTES);
            }
            reach(Math.max(bytes, reached));
        }
    }

    private static long settled(Meter[] all) {
        long bytes = 0;
        for (Meter meter : all) {
            bytes += meter.settledBytes();
        }
        return bytes;
    }

    private void reach(long bytes) {
        reached = bytes;
        limit = bytes + Math.max(bytes >> SLACK_SHIFT, slack);
    }

    /// Begins a new peak.
    synchronized void reset() {
        Meter[] all = meters;
        long bytes = settled(all);
        peak = new AtomicLong(bytes);
        anyDrained = false;
        slack = SLACK_BYTES;
        reach(bytes);
    }

    /// Returns the peak, given the sum of the meters' own peaks.
    synchronized long bytes(long sumOfPeaks) {
        if (meters.length < 2) {
            return Math.max(sumOfPeaks, peak.get());
        }
        return anyDrained ? peak.get() : Math.min(sumOfPeaks, peak.get());
    }
}
