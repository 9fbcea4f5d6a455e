package io.cistern.observability;

/// Says how many events a [MemoryHistory] keeps, and whether with stacks.
///
/// @param capacity events kept for each device, 1 to 2^28; rounded up to a power of two. Each event takes
///     memory of the Java heap, several times as much with its stack. The collector copies what is kept, so a
///     larger capacity makes each event slower
/// @param stacks whether to record the place in the program with each event, which makes each event slower
public record HistoryOptions(int capacity, boolean stacks) {
    private static final int USUAL_CAPACITY = 1 << 16;
    private static final int MAX_CAPACITY = 1 << 28;

    /// Checks the capacity and rounds it up.
    ///
    /// @throws IllegalArgumentException if it is less than 1 or more than 2^28
    public HistoryOptions {
        if (capacity < 1 || capacity > MAX_CAPACITY) {
            throw new IllegalArgumentException("capacity must be 1 to " + MAX_CAPACITY + ", not " + capacity);
        }
        capacity = Integer.highestOneBit(2 * capacity - 1);
    }

    /// Returns options for 65,536 events a device, with stacks.
    public static HistoryOptions withStacks() {
        return new HistoryOptions(USUAL_CAPACITY, true);
    }

    /// Returns options for 65,536 events a device, without stacks.
    public static HistoryOptions withoutStacks() {
        return new HistoryOptions(USUAL_CAPACITY, false);
    }
}
