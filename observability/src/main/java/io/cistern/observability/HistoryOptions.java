package io.cistern.observability;

import io.cistern.diagnostics.MemoryEvent;
import java.util.HashSet;
import java.util.Set;

/// Sets how many events a [MemoryHistory] keeps, of which kinds, and whether with call stacks.
///
/// @param capacity events kept for each device, 1 to 2^28; rounded up to a power of two. Each event takes
///     Java heap, several times as much with a stack. The garbage collector copies the events that are
///     kept, so a larger capacity makes each event slower
/// @param stacks whether to record the call stack of events, which makes each of them slower
/// @param stacksOfAllocationsOnly with `stacks`: whether only allocations get a stack
/// @param leftOut kinds of events that are not recorded, such as [MemoryEvent.ScopeEntered]
public record HistoryOptions(
        int capacity, boolean stacks, boolean stacksOfAllocationsOnly, Set<Class<? extends MemoryEvent>> leftOut) {
    private static final int USUAL_CAPACITY = 1 << 16;
    private static final int MAX_CAPACITY = 1 << 28;

    /// Checks the capacity and rounds it up.
    ///
    /// @throws IllegalArgumentException if `capacity` is less than 1 or more than 2^28
    public HistoryOptions {
        if (capacity < 1 || capacity > MAX_CAPACITY) {
            throw new IllegalArgumentException("capacity must be 1 to " + MAX_CAPACITY + ", not " + capacity);
        }
        capacity = Integer.highestOneBit(2 * capacity - 1);
        leftOut = Set.copyOf(leftOut);
    }

    /// Returns options for all kinds of events.
    public HistoryOptions(int capacity, boolean stacks) {
        this(capacity, stacks, false, Set.of());
    }

    /// Returns these options with stacks of allocations only. Frees, which are as frequent, then cost less.
    public HistoryOptions onlyStacksOfAllocations() {
        return new HistoryOptions(capacity, true, true, leftOut);
    }

    /// Returns these options without some kinds of events.
    public HistoryOptions without(Set<Class<? extends MemoryEvent>> kinds) {
        Set<Class<? extends MemoryEvent>> all = new HashSet<>(leftOut);
        all.addAll(kinds);
        return new HistoryOptions(capacity, stacks, stacksOfAllocationsOnly, all);
    }

    boolean records(MemoryEvent event) {
        return leftOut.isEmpty() || !leftOut.contains(event.getClass());
    }

    boolean recordsStackOf(MemoryEvent event) {
        return stacks && (!stacksOfAllocationsOnly || event instanceof MemoryEvent.Allocated);
    }

    /// Returns options for 65,536 events per device, with stacks.
    public static HistoryOptions withStacks() {
        return new HistoryOptions(USUAL_CAPACITY, true);
    }

    /// Returns options for 65,536 events per device, without stacks.
    public static HistoryOptions withoutStacks() {
        return new HistoryOptions(USUAL_CAPACITY, false);
    }
}
