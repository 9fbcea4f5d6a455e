package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.charts.Rows;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The raw output under `docs/measurements`, for one page. A run is a folder there, or an archive in a folder without
/// its
/// ending: `simulated`, `2026-11-23-h200/raw-last`.
///
/// @param measurements the folder `docs/measurements`
/// @param link what the page puts before a link into that folder
record RawOutput(Path measurements, String link) {
    /// What was measured on the simulated GPU; `dates.csv` there tells when.
    static final String SIMULATED = "simulated";
    /// Other folders begin with their day, or month where nobody recorded the day.
    private static final Pattern DATE = Pattern.compile("^(\\d{4}-\\d\\d)(-\\d\\d)?-.*");

    List<Rows.Row> json(String run, String file) {
        return Rows.json(file, lines(run, file));
    }

    List<Rows.Row> csv(String run, String file) {
        return Rows.csv(file, lines(run, file));
    }

    List<String> lines(String run, String file) {
        Path place = measurements.resolve(run);
        try {
            return Files.isDirectory(place)
                    ? Files.readAllLines(place.resolve(file))
                    : TarGz.read(measurements.resolve(run + ".tar.gz"), "raw/" + file)
                            .lines()
                            .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// Where and when files came from, and a link to them.
    String source(String run, String... files) {
        String folder = run.contains("/") ? run.substring(0, run.indexOf('/')) : run;
        String archive = folder.equals(run) ? "" : ", `" + run.substring(folder.length() + 1) + "`";
        String machine = folder.equals(SIMULATED)
                ? "The simulated GPU, "
                        + Select.only(csv(SIMULATED, "dates.csv"), "file", files[0])
                                .text("date")
                : (folder.contains("h100") ? "An H100, " : "An H200, ") + date(folder);
        return "%s ([raw](%s%s)%s, `%s`)".formatted(machine, link, folder, archive, String.join("`, `", files));
    }

    private static String date(String folder) {
        Matcher date = DATE.matcher(folder);
        if (!date.matches()) {
            throw new IllegalStateException(folder);
        }
        return date.group(1) + (date.group(2) == null ? ", day not recorded" : date.group(2));
    }
}
