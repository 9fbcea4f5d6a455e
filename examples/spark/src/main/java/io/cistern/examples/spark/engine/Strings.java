package io.cistern.examples.spark.engine;

/// Texts on a device, in UTF-8: row i is the bytes from offset i up to offset i + 1.
public record Strings(Column offsets, Column bytes) {
    /// Returns the number of rows.
    public long count() {
        return offsets.count() - 1;
    }
}
