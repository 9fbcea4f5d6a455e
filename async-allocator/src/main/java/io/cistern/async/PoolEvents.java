package io.cistern.async;

import java.util.concurrent.atomic.LongAdder;

/// Counts rare events on one device. Weakly consistent while they happen.
final class PoolEvents {
    /// Requests that the driver refused at first.
    final LongAdder retries = new LongAdder();
    /// Requests that failed.
    final LongAdder failures = new LongAdder();
    /// Waits of the host for all work of the device.
    final LongAdder synchronisations = new LongAdder();
    /// Trims, even those that gave nothing back.
    final LongAdder trims = new LongAdder();
    /// The bytes that trims gave back.
    final LongAdder trimmedBytes = new LongAdder();

    void resetTotals() {
        for (LongAdder count : new LongAdder[] {retries, failures, synchronisations, trims, trimmedBytes}) {
            count.reset();
        }
    }
}
