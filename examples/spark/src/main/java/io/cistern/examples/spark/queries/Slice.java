package io.cistern.examples.spark.queries;

import java.util.List;

/// One of several equal parts of a table's rows.
record Slice(long number, long of) {
    static final Slice ALL = new Slice(0, 1);

    private static final long MOST = 1 << 12;

    /// Returns the number of the slice's first row.
    long first(long rowCount) {
        return rowCount * number / of;
    }

    /// Returns the number of the next slice's first row.
    long end(long rowCount) {
        return rowCount * (number + 1) / of;
    }

    /// Returns the two halves; empty if smaller ones would not help, since the small tables do not shrink.
    List<Slice> halves() {
        return of >= MOST ? List.of() : List.of(new Slice(2 * number, 2 * of), new Slice(2 * number + 1, 2 * of));
    }
}
