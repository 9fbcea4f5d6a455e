package io.cistern.cli.report;

import io.cistern.cli.common.ByteSize;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Assembles a page from a template: it replaces each `@name@` by the chart library, styles, scripts or
/// snapshots. All are resources beside this class, except the chart library, which comes from its own JAR.
public final class ReportPage {
    private static final String CHARTS = "/META-INF/resources/webjars/uplot/1.6.30/";

    private static final List<String> STYLES = List.of("page.css", "parts.css");

    /// Each script uses those before it.
    private static final List<String> SCRIPTS = List.of(
            "format.js",
            "elements.js",
            "history.js",
            "snapshot.js",
            "ranges.js",
            "series.js",
            "findings.js",
            "summary.js",
            "chart.js",
            "timeline.js",
            "fragmentation.js",
            "segments.js",
            "holders.js",
            "traffic.js",
            "out-of-memory.js",
            "comparison.js",
            "main.js");

    private ReportPage() {}

    /// Writes the page to a file. A name in a snapshot may hold half a surrogate pair, which is
    /// replaced.
    ///
    /// @param grown what grew from the first snapshot to the second, for people; empty if that is not known
    /// @return the file and its size, for people
    public static String write(List<Snapshot> snapshots, String grown, Path file) throws IOException {
        try (Writer out =
                new BufferedWriter(new OutputStreamWriter(Files.newOutputStream(file), StandardCharsets.UTF_8))) {
            write(snapshots, grown, out);
        }
        return file + ", " + ByteSize.format(Files.size(file));
    }

    private static void write(List<Snapshot> snapshots, String grown, Writer out) throws IOException {
        String[] parts = resource("page.html").split("@", -1);
        for (int i = 0; i < parts.length; i++) {
            if (i % 2 == 0) {
                out.write(parts[i]);
            } else {
                write(parts[i], snapshots, grown, out);
            }
        }
    }

    private static void write(String part, List<Snapshot> snapshots, String grown, Writer out) throws IOException {
        switch (part) {
            case "chartLicense" -> out.write(resource(CHARTS + "LICENSE"));
            case "chartStyle" -> out.write(resource(CHARTS + "dist/uPlot.min.css"));
            case "locale" -> out.write(resource("locale.js"));
            case "chartScript" -> out.write(resource(CHARTS + "dist/uPlot.iife.min.js"));
            case "styles" -> writeAll(STYLES, out);
            case "scripts" -> writeAll(SCRIPTS, out);
            case "snapshots" -> writeSnapshots(snapshots, out);
            case "grown" -> out.write(attribute(grown));
            default -> throw new IllegalStateException("page.html names no part '" + part + "'");
        }
    }

    private static void writeAll(List<String> names, Writer out) throws IOException {
        for (String name : names) {
            out.write(resource(name));
        }
    }

    private static void writeSnapshots(List<Snapshot> snapshots, Writer out) throws IOException {
        for (Snapshot snapshot : snapshots) {
            out.write("<script type=\"application/json\" class=\"snapshot\" data-name=\"");
            out.write(attribute(snapshot.name()));
            out.write("\">");
            out.write(snapshot.json());
            out.write("</script>\n");
        }
    }

    private static String attribute(String text) {
        return text.replace("&", "&amp;").replace("\"", "&quot;").replace("<", "&lt;");
    }

    private static String resource(String name) throws IOException {
        try (InputStream in = ReportPage.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException("there is no resource " + name);
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
