package io.cistern.benchmarks.figures;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Function;

/// Makes the blocks of figures in all pages, and the charts, from the raw output.
/// `tools/benchmarks/measure figures` runs it.
public final class MakeFigures {
    private MakeFigures() {}

    /// Rewrites the figures of all pages and all charts. Prints the pages that changed, and figures
    /// without a source.
    ///
    /// @param root the root of the sources
    public static void make(Path root) throws IOException {
        for (Path page : Pages.all(root)) {
            String made = Pages.made(root, page);
            if (!made.equals(Files.readString(page))) {
                Files.writeString(page, made);
                System.out.println(root.relativize(page));
            }
            UnsourcedFigures.in(made).forEach(line -> System.out.println(root.relativize(page) + ":" + line));
        }
        RawOutput raw = RawOutput.of(root, root.resolve("README.md"));
        for (Map.Entry<String, Function<RawOutput, String>> chart : Charts.MAKERS.entrySet()) {
            Files.writeString(
                    root.resolve("docs/charts").resolve(chart.getKey() + ".svg"),
                    chart.getValue().apply(raw));
        }
    }
}
