package io.cistern.benchmarks.figures;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.zip.GZIPOutputStream;

/// Puts raw output into `docs/measurements/raw`, if there are arguments, notes machine and day in its row of the table
/// there, and makes the pages.
///
/// Arguments: the machine, as in "An H200"; the file there, such as `replays.jsonl`; the files that it gets, in turn.
/// The
/// working folder, or one above it, is the root of the sources.
public final class Keep {
    /// The column of machine and date in the table.
    private static final int MACHINE = 2;

    private Keep() {}

    /// Keeps and makes.
    public static void main(String[] arguments) throws IOException {
        Path root = Path.of("").toAbsolutePath();
        while (!Files.exists(root.resolve("bin/find-jdk"))) {
            root = Objects.requireNonNull(root.getParent());
        }
        if (arguments.length > 0) {
            keep(root.resolve("docs/measurements"), List.of(arguments));
        }
        Pages.makeAll(root);
    }

    private static void keep(Path measurements, List<String> arguments) throws IOException {
        String machine = arguments.get(0);
        String name = arguments.get(1);
        List<String> lines = new ArrayList<>();
        for (String file : arguments.subList(2, arguments.size())) {
            List<String> own = Files.readAllLines(Path.of(file));
            boolean headerAgain = name.endsWith(".csv") && !lines.isEmpty();
            lines.addAll(own.subList(headerAgain ? 1 : 0, own.size()));
        }
        try (OutputStream out =
                new GZIPOutputStream(Files.newOutputStream(measurements.resolve("raw/" + name + ".gz")))) {
            out.write((String.join("\n", lines) + "\n").getBytes(StandardCharsets.UTF_8));
        }
        Path table = measurements.resolve("README.md");
        List<String> rows = new ArrayList<>(Files.readAllLines(table));
        rows.replaceAll(row -> row.contains("(raw/" + name + ".gz)") ? dated(row, machine) : row);
        Files.write(table, rows);
    }

    private static String dated(String row, String machine) {
        String[] cells = row.split("\\|", -1);
        cells[MACHINE] = " " + machine + ", " + LocalDate.now(ZoneOffset.UTC) + " ";
        return String.join("|", cells);
    }
}
