package io.cistern.internal.routing;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/// Decides which meters count for which [Threshold]s. A meter that counts for none has an empty list. So
/// thresholds cost nothing if there are none, and else only when a thread goes to its meter, some MiB apart.
public final class Thresholds {
    private static final Threshold[] NONE = {};

    private final Set<Meter> meters = new LinkedHashSet<>();
    private final List<Threshold> thresholds = new ArrayList<>();

    synchronized void opened(Meter meter) {
        meters.add(meter);
        arrange();
    }

    synchronized void drained(Meter meter) {
        meters.remove(meter);
        if (meter.thresholds.length > 0) {
            meter.thresholds = NONE;
            arrange();
        }
    }

    /// Watches a threshold from now on; notifies at once if the sum is already above it.
    public void add(Threshold threshold) {
        synchronized (this) {
            thresholds.add(threshold);
            arrange();
        }
        threshold.settledBytes(); // so that threads tell of each fall from now on
        threshold.moved();
    }

    public synchronized void remove(Threshold threshold) {
        thresholds.remove(threshold);
        meters.forEach(this::arrange);
    }

    private void arrange() {
        if (!thresholds.isEmpty()) {
            for (Threshold each : thresholds) {
                each.meters = meters.stream().filter(each::counts).toArray(Meter[]::new);
            }
            meters.forEach(this::arrange);
        }
    }

    private void arrange(Meter meter) {
        meter.thresholds =
                thresholds.stream().filter(threshold -> threshold.counts(meter)).toArray(Threshold[]::new);
    }
}
