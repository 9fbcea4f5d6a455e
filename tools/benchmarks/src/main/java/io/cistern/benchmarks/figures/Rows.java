package io.cistern.benchmarks.figures;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Rows of raw measurements: the fields of flat JSON objects, one a line, or of CSV with a header. Lines that are
/// neither, such as messages of a program, are passed over.
public final class Rows {
    private static final Pattern FIELD =
            Pattern.compile("\"(\\w+)\": ?(?:\"((?:[^\"\\\\]|\\\\.)*)\"|([-+.\\w]+|\\[[^]]*]))");
    private static final Pattern CELL = Pattern.compile("(?:^|,)(?:\"([^\"]*)\"|([^,]*))");

    private Rows() {}

    /// One row.
    ///
    /// @param file the name of the file that it stood in, without what follows the point
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

    /// The rows of all files of a folder whose names match a glob, one glob after the other.
    static List<Row> json(Path folder, String... globs) throws IOException {
        List<Row> rows = new ArrayList<>();
        for (String glob : globs) {
            for (Path file : files(folder, glob)) {
                rows.addAll(json(name(file), Files.readAllLines(file)));
            }
        }
        return rows;
    }

    /// The rows of a file of JSON objects.
    public static List<Row> json(String file, List<String> lines) {
        return lines.stream()
                .filter(line -> line.startsWith("{"))
                .map(line -> json(file, line))
                .toList();
    }

    private static Row json(String file, String line) {
        Map<String, String> fields = new LinkedHashMap<>();
        for (Matcher field = FIELD.matcher(line); field.find(); ) {
            fields.putIfAbsent(field.group(1), field.group(2) == null ? field.group(3) : field.group(2));
        }
        return new Row(file, fields);
    }

    private static String name(Path file) {
        String name = file.getFileName().toString();
        return name.substring(0, name.indexOf('.'));
    }

    /// The rows of all files of a folder whose names match a glob.
    static List<Row> csv(Path folder, String glob) throws IOException {
        List<Row> rows = new ArrayList<>();
        for (Path file : files(folder, glob)) {
            rows.addAll(csv(name(file), Files.readAllLines(file)));
        }
        return rows;
    }

    /// The rows of a file of CSV with a header.
    public static List<Row> csv(String file, List<String> lines) {
        List<String> names = cells(lines.getFirst());
        return lines.stream().skip(1).map(line -> csv(file, names, cells(line))).toList();
    }

    private static Row csv(String file, List<String> names, List<String> cells) {
        Map<String, String> fields = new LinkedHashMap<>();
        for (int i = 0; i < names.size(); i++) {
            fields.put(names.get(i), cells.get(i));
        }
        return new Row(file, fields);
    }

    private static List<String> cells(String line) {
        return CELL.matcher(line)
                .results()
                .map(cell -> cell.group(1) == null ? cell.group(2) : cell.group(1))
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
