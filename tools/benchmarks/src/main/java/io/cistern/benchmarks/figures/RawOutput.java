package io.cistern.benchmarks.figures;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;

/// Reads the raw output in `docs/measurements/raw` for one page. Each file is named without its ending `.gz`,
/// and has a row in the table of `docs/measurements/README.md`.
///
/// @param measurements the folder `docs/measurements`
/// @param link the prefix of the page's links into that folder
record RawOutput(Path measurements, String link) {
    /// The column of the table, counted from the empty one before the first `|`.
    private static final int MACHINE = 2;

    private static final Pattern DAY = Pattern.compile(", \\d{4}-\\d{2}-\\d{2}$");

    static RawOutput of(Path root, Path page) {
        Path measurements = root.resolve("docs/measurements");
        return new RawOutput(measurements, page.resolveSibling("").relativize(measurements) + "/");
    }

    List<Row> json(String file) {
        return Row.json(lines(file));
    }

    List<Row> csv(String file) {
        return Row.csv(lines(file));
    }

    List<String> lines(String file) {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(
                new GZIPInputStream(
                        Files.newInputStream(measurements.resolve("raw").resolve(file + ".gz"))),
                StandardCharsets.UTF_8))) {
            return in.lines().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// Returns the machines and days of files with links: "An H200, 2026-11-23 to 2026-11-24 (raw: `queries`,
    /// `threads`)".
    String source(String... files) {
        return Arrays.stream(files)
                .collect(Collectors.groupingBy(
                        file -> DAY.matcher(machine(file)).replaceFirst(""), LinkedHashMap::new, Collectors.toList()))
                .entrySet()
                .stream()
                .map(machine -> machine.getKey()
                        + days(machine.getValue())
                        + machine.getValue().stream()
                                .map(file ->
                                        "[%s](%sraw/%s.gz)".formatted(file.substring(0, file.indexOf('.')), link, file))
                                .collect(Collectors.joining(", ", " (raw: ", ")")))
                .collect(Collectors.joining(". "));
    }

    private String days(List<String> files) {
        List<String> days = files.stream()
                .flatMap(file -> DAY.matcher(machine(file)).results().map(MatchResult::group))
                .sorted()
                .toList();
        if (days.isEmpty()) {
            return "";
        }
        return days.getFirst()
                + (days.getFirst().equals(days.getLast())
                        ? ""
                        : " to " + days.getLast().substring(2));
    }

    /// Returns the machine and day of a file, as listed in the table.
    String machine(String file) {
        try (Stream<String> lines = Files.lines(measurements.resolve("README.md"))) {
            return lines.filter(line -> line.contains("(raw/" + file + ".gz)"))
                    .map(line -> line.split("\\|", -1)[MACHINE].strip())
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(file + " is not in the table"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
