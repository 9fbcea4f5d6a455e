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
            throw new IllegalArgumentException("count " + count + ", afterAllocations " + afterAllocations);
        }
        this.split = split;
        left = count;
        passing = afterAllocations;
    }

    /// Returns whether the failures ask the task to split its input.
    boolean isSplit() {
        return split;
    }

    /// Counts an allocation and returns whether it has to fail.
    synchronized boolean takes() {
        if (left == 0) {
            return false;
        }
        if (passing > 0) {
            passing--;
            return false;
        }
        left--;
        return true;
    }
}
