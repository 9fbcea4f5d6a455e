package io.cistern.async;

import java.util.concurrent.atomic.LongAdder;

/// Counts of what happens rarely on one device. Weakly consistent while it happens.
final class PoolEvents {
    /// Requests that the driver refused at first.
    final LongAdder retries = new LongAdder();
    /// Requests that failed.
    final LongAdder failures = new LongAdder();
    /// Waits of the host for all work of the device.
    final LongAdder synchronisations = new LongAdder();
    /// Trims, whether anything went back or not.
    final LongAdder trims = new LongAdder();
    /// What they gave back.
    final LongAdder trimmedBytes = new LongAdder();

    void resetTotals() {
        for (LongAdder count : new LongAdder[] {retries, failures, synchronisations, trims, trimmedBytes}) {
            count.reset();
        }
    }
}
