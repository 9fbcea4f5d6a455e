package io.cistern.suites.pressure;

import java.util.List;

/// A part of a task's input.
record ItemRange(int from, int to) {
    int count() {
        return to - from;
    }

    /// Returns two halves, or no part for a single item.
    List<ItemRange> halves() {
        int middle = (from + to) >>> 1;
        return count() < 2 ? List.of() : List.of(new ItemRange(from, middle), new ItemRange(middle, to));
    }
}
