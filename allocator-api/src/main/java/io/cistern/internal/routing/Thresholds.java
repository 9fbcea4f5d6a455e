package io.cistern.internal.routing;

import java.util.ArrayList;
import java.util.List;

/// Which meters count for which [Threshold]s. A meter that is looked at by nobody has an empty list: so thresholds
/// cost nothing where there are none, and elsewhere only where a lane goes to its meter, some MiB apart.
public final class Thresholds {
    private static final Threshold[] NONE = {};

    private final List<Meter> meters = new ArrayList<>();
    private final List<Threshold> thresholds = new ArrayList<>();

    synchronized void opened(Meter meter) {
        meters.add(meter);
        arrange();
    }

    /// A meter has no routes any more.
    synchronized void drained(Meter meter) {
        meters.remove(meter);
        meter.thresholds = NONE;
        arrange();
    }

    /// Watches for a threshold from now on; tells at once if it is above already.
    public void add(Threshold threshold) {
        synchronized (this) {
            thresholds.add(threshold);
            arrange();
        }
        threshold.moved();
    }

    /// Watches no more.
    public synchronized void remove(Threshold threshold) {
        thresholds.remove(threshold);
        arrange();
    }

    private void arrange() {
        for (Threshold threshold : thresholds) {
            threshold.meters = meters.stream().filter(threshold::counts).toArray(Meter[]::new);
        }
        for (Meter meter : meters) {
            meter.thresholds = thresholds.stream()
                    .filter(threshold -> threshold.counts(meter))
                    .toArray(Threshold[]::new);
        }
    }
}
