package io.cistern.benchmarks.figures;

import com.fasterxml.jackson.jr.ob.JSON;
import de.siegmar.fastcsv.reader.CsvReader;
import io.cistern.benchmarks.Samples;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// A row of raw output: the fields of a flat JSON object, or of CSV with a header.
record Row(Map<String, String> fields) {
    /// Keeps numbers as they were written.
    private static final JSON AS_WRITTEN = JSON.std.with(JSON.Feature.USE_BIG_DECIMAL_FOR_FLOATS);

    /// Reads objects, one a line; skips other lines, such as messages of a program.
    static List<Row> json(List<String> lines) {
        return lines.stream()
                .filter(line -> line.startsWith("{"))
                .map(Row::json)
                .toList();
    }

    private static Row json(String line) {
        Map<String, String> fields = new LinkedHashMap<>();
        try {
            AS_WRITTEN.mapFrom(line).forEach((name, value) -> fields.put(name, String.valueOf(value)));
        } catch (IOException e) {
            throw new UncheckedIOException(line, e);
        }
        return new Row(fields);
    }

    static List<Row> csv(List<String> lines) {
        return CsvReader.builder().ofNamedCsvRecord(String.join("\n", lines)).stream()
                .map(row -> new Row(row.getFieldsAsMap()))
                .toList();
    }

    /// Returns the rows in which each field has its value: `where(rows, "trace", "gpt2_train", "work", "none")`.
    static List<Row> where(List<Row> rows, String... fieldsAndValues) {
        return rows.stream().filter(row -> row.matches(fieldsAndValues)).toList();
    }

    private boolean matches(String... fieldsAndValues) {
        for (int i = 0; i < fieldsAndValues.length; i += 2) {
            if (!textOr(fieldsAndValues[i], "").equals(fieldsAndValues[i + 1])) {
                return false;
            }
        }
        return true;
    }

    /// Returns the only such row.
    ///
    /// @throws IllegalStateException if there is no such row or more than one
    static Row only(List<Row> rows, String... fieldsAndValues) {
        List<Row> found = where(rows, fieldsAndValues);
        if (found.size() != 1) {
            throw new IllegalStateException(found.size() + " rows with " + List.of(fieldsAndValues));
        }
        return found.getFirst();
    }

    /// Returns the values of a field.
    static Samples samples(List<Row> rows, String field) {
        return new Samples(rows.stream().map(row -> row.number(field)).toList());
    }

    boolean has(String name) {
        return fields.containsKey(name);
    }

    String textOr(String name, String otherwise) {
        return fields.getOrDefault(name, otherwise);
    }

    String text(String name) {
        return Objects.requireNonNull(fields.get(name), () -> "no field " + name + " in " + fields);
    }

    double number(String name) {
        return Double.parseDouble(text(name));
    }
}
