package io.cistern.pressure;

/// Failures that a test has requested.
///
/// **Threads.** Any; the allocations of all threads of a task count together.
final class ForcedOom {
    private final boolean split;
    private int left;
    private int passing;

    ForcedOom(boolean split, int count, int afterAllocations) {
        if (count < 0 || afterAllocations < 0) {
            throw new IllegalArgumentException(
                    "count is " + count + ", afterAllocations is " + afterAllocations + ": neither may be negative");
        }
        this.split = split;
        left = count;
        passing = afterAllocations;
    }

    /// Returns whether the failures ask the task to split its input.
    boolean isSplit() {
        return split;
    }

    /// Returns whether the next allocation has to fail; then it counts as failed.
    synchronized boolean takes() {
        if (left == 0 || passing > 0) {
            return false;
        }
        left--;
        return true;
    }

    /// Counts an allocation that succeeded.
    synchronized void succeeded() {
        passing = Math.max(0, passing - 1);
    }
}
