package io.cistern.benchmarks.figures;

import java.util.List;

/// Finds rows of raw output by the values of their fields.
final class Select {
    private Select() {}

    /// Returns the rows in which each field has its value:
    /// `where(rows, "trace", "gpt2_train", "work", "none")`.
    static List<Rows.Row> where(List<Rows.Row> rows, String... fieldsAndValues) {
        return rows.stream().filter(row -> matches(row, fieldsAndValues)).toList();
    }

    private static boolean matches(Rows.Row row, String... fieldsAndValues) {
        for (int i = 0; i < fieldsAndValues.length; i += 2) {
            if (!row.textOr(fieldsAndValues[i], "").equals(fieldsAndValues[i + 1])) {
                return false;
            }
        }
        return true;
    }

    /// Returns the only such row.
    ///
    /// @throws IllegalStateException if there is no such row or more than one
    static Rows.Row only(List<Rows.Row> rows, String... fieldsAndValues) {
        List<Rows.Row> found = where(rows, fieldsAndValues);
        if (found.size() != 1) {
            throw new IllegalStateException(found.size() + " rows with " + List.of(fieldsAndValues));
        }
        return found.getFirst();
    }
}
