package io.cistern.suites.pressure;

import io.cistern.pressure.TaskStatistics;

/// The sums of the results of scenarios.
///
/// @param scenarios the number of scenarios
/// @param retries how often tasks rolled back
/// @param splits how often tasks went on with a part of their input
/// @param blockedNanos the time that all threads waited for memory
/// @param lostNanos the time of all threads in work that was rolled back
/// @param allocatedBytes the bytes of all blocks
/// @param lostBytes the bytes of blocks in work that was rolled back
record ScenarioReport(
        long scenarios,
        long retries,
        long splits,
        long blockedNanos,
        long lostNanos,
        long allocatedBytes,
        long lostBytes) {
    static final ScenarioReport NONE = new ScenarioReport(0, 0, 0, 0, 0, 0, 0);

    static ScenarioReport of(ScenarioTask task) {
        TaskStatistics told = task.task().statistics();
        return new ScenarioReport(
                0,
                told.retries(),
                told.splits(),
                told.blockedNanos(),
                told.lostNanos(),
                task.allocatedBytes(),
                task.lostBytes());
    }

    ScenarioReport plus(ScenarioReport other) {
        return new ScenarioReport(
                scenarios + other.scenarios,
                retries + other.retries,
                splits + other.splits,
                blockedNanos + other.blockedNanos,
                lostNanos + other.lostNanos,
                allocatedBytes + other.allocatedBytes,
                lostBytes + other.lostBytes);
    }

    ScenarioReport plusScenario() {
        return plus(new ScenarioReport(1, 0, 0, 0, 0, 0, 0));
    }

    @Override
    public String toString() {
        return "%d scenarios: %d retries, %d splits, %.2f s blocked, %.2f s lost; %.1f %% of %.1f GiB allocated in vain"
                .formatted(
                        scenarios,
                        retries,
                        splits,
                        blockedNanos / 1e9,
                        lostNanos / 1e9,
                        100.0 * lostBytes / Math.max(1, allocatedBytes),
                        allocatedBytes / (double) (1 << 30));
    }
}
