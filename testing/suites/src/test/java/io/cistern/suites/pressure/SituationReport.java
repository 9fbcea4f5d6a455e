package io.cistern.suites.pressure;

import io.cistern.pressure.TaskStatistics;

/// The sums of the results of situations.
///
/// @param situations the number of situations
/// @param retries how often tasks rolled back
/// @param splits how often tasks went on with a part of their input
/// @param blockedNanos the time that all threads waited for memory
/// @param lostNanos the time of all threads in work that was rolled back
/// @param allocatedBytes the bytes of all blocks
/// @param lostBytes the bytes of blocks in work that was rolled back
record SituationReport(
        long situations,
        long retries,
        long splits,
        long blockedNanos,
        long lostNanos,
        long allocatedBytes,
        long lostBytes) {
    static final SituationReport NONE = new SituationReport(0, 0, 0, 0, 0, 0, 0);

    static SituationReport of(SituationTask task) {
        TaskStatistics told = task.task().statistics();
        return new SituationReport(
                0,
                told.retries(),
                told.splits(),
                told.blockedNanos(),
                told.lostNanos(),
                task.allocatedBytes(),
                task.lostBytes());
    }

    SituationReport plus(SituationReport other) {
        return new SituationReport(
                situations + other.situations,
                retries + other.retries,
                splits + other.splits,
                blockedNanos + other.blockedNanos,
                lostNanos + other.lostNanos,
                allocatedBytes + other.allocatedBytes,
                lostBytes + other.lostBytes);
    }

    SituationReport plusSituation() {
        return plus(new SituationReport(1, 0, 0, 0, 0, 0, 0));
    }

    @Override
    public String toString() {
        return "%d situations: %d retries, %d splits, %.2f s blocked, %.2f s lost; %.1f %% of %.1f GiB allocated in vain"
                .formatted(
                        situations,
                        retries,
                        splits,
                        blockedNanos / 1e9,
                        lostNanos / 1e9,
                        100.0 * lostBytes / Math.max(1, allocatedBytes),
                        allocatedBytes / (double) (1 << 30));
    }
}
