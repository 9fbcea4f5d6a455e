package io.cistern.examples.spark.engine;

import java.util.List;

/// Rows by key.
///
/// @param ofRows each row's group, from 0
/// @param rows a row of each group
public record Groups(Column ofRows, Column rows) {
    /// Returns both columns.
    public List<Column> columns() {
        return List.of(ofRows, rows);
    }

    /// Returns the number of groups.
    public long count() {
        return rows.count();
    }
}
