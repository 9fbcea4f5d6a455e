package io.cistern.benchmarks.figures;

import com.fasterxml.jackson.jr.ob.JSON;
import de.siegmar.fastcsv.reader.CsvReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// Reads rows of raw measurements: the fields of flat JSON objects, one a line, or of CSV with a header. It
/// skips lines that are not JSON objects, such as messages of a program.
public final class Rows {
    /// Keeps numbers as they were written.
    private static final JSON AS_WRITTEN = JSON.std.with(JSON.Feature.USE_BIG_DECIMAL_FOR_FLOATS);

    private Rows() {}

    /// A row of raw output.
    ///
    /// @param file the name of its file, up to the first dot
    public record Row(String file, Map<String, String> fields) {
        public boolean has(String name) {
            return fields.containsKey(name);
        }

        public String textOr(String name, String otherwise) {
            return fields.getOrDefault(name, otherwise);
        }

        public String text(String name) {
            return Objects.requireNonNull(fields.get(name), () -> "no field " + name + " in " + fields);
        }

        public double number(String name) {
            return Double.parseDouble(text(name));
        }
    }

    /// Reads the rows of all files in a folder whose names match the globs, one glob after another.
    static List<Row> json(Path folder, String... globs) throws IOException {
        List<Row> rows = new ArrayList<>();
        for (String glob : globs) {
            for (Path file : files(folder, glob)) {
                rows.addAll(json(name(file), Files.readAllLines(file)));
            }
        }
        return rows;
    }

    /// Reads the rows of a file of JSON objects.
    public static List<Row> json(String file, List<String> lines) {
        return lines.stream()
                .filter(line -> line.startsWith("{"))
                .map(line -> json(file, line))
                .toList();
    }

    private static Row json(String file, String line) {
        Map<String, String> fields = new LinkedHashMap<>();
        try {
            AS_WRITTEN.mapFrom(line).forEach((name, value) -> fields.put(name, String.valueOf(value)));
        } catch (IOException e) {
            throw new UncheckedIOException(file + ": " + line, e);
        }
        return new Row(file, fields);
    }

    private static String name(Path file) {
        String name = file.getFileName().toString();
        return name.substring(0, name.indexOf('.'));
    }

    /// Reads the rows of all files in a folder whose names match a glob.
    static List<Row> csv(Path folder, String glob) throws IOException {
        List<Row> rows = new ArrayList<>();
        for (Path file : files(folder, glob)) {
            rows.addAll(csv(name(file), Files.readAllLines(file)));
        }
        return rows;
    }

    /// Reads the rows of a file of CSV with a header.
    public static List<Row> csv(String file, List<String> lines) {
        return CsvReader.builder().ofNamedCsvRecord(String.join("\n", lines)).stream()
                .map(row -> new Row(file, row.getFieldsAsMap()))
                .toList();
    }

    private static List<Path> files(Path folder, String glob) throws IOException {
        List<Path> files = new ArrayList<>();
        try (DirectoryStream<Path> matching = Files.newDirectoryStream(folder, glob)) {
            matching.forEach(files::add);
        }
        files.sort(null);
        return files;
    }
}
