package io.cistern.benchmarks.figures;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Fills in the figures of the pages that users read: README.md, ARCHITECTURE.md, docs/*.md and
/// docs/decisions/*.md. Measured figures stand only in blocks that are made from raw output:
///
/// ```
/// <!-- figures: NAME -->
/// …
/// <!-- end of figures -->
/// ```
final class Pages {
    private static final Pattern BLOCK =
            Pattern.compile("(<!-- figures: (\\w+) -->\n)(.*?)(<!-- end of figures -->)", Pattern.DOTALL);
    private static final Map<String, Function<RawOutput, String>> FIGURES = Map.ofEntries(
            Map.entry("handles", HandleFigures::costs),
            Map.entry("managed", ManagedFigures::table),
            Map.entry("onnx_serving", OnnxFigures::serving),
            Map.entry("front", FrontFigures::jobs),
            Map.entry("handle_loads", HandleFigures::loads),
            Map.entry("queries_one_by_one", QueryFigures::byQuery),
            Map.entry("queries_together", QueryFigures::together),
            Map.entry("jobs", JobFigures::jobs),
            Map.entry("replays", ReplayFigures::hostTime),
            Map.entry("first_passes", ReplayFigures::firstPasses),
            Map.entry("generated_programs", ReplayFigures::generated),
            Map.entry("replays_with_fills", ReplayFigures::withFills),
            Map.entry("longer_replays", ReplayFigures::longer),
            Map.entry("pairs", PairFigures::beside),
            Map.entry("threads", PairFigures::loads),
            Map.entry("races_found", HazardFigures::found),
            Map.entry("races_cost", HazardFigures::costs),
            Map.entry("framework", PairFigures::added),
            Map.entry("all_reduce", CollectiveFigures::allReduce),
            Map.entry("capacity", MemoryFigures::capacity),
            Map.entry("compaction", MemoryFigures::compaction),
            Map.entry("requests_at_capacity", MemoryFigures::requestsAtCapacity),
            Map.entry("sleep", MemoryFigures::sleep),
            Map.entry("native_boundary", ProgramFigures::boundary),
            Map.entry("start", ProgramFigures::start),
            Map.entry("buffers", ProgramFigures::buffers));

    private Pages() {}

    static List<Path> all(Path root) throws IOException {
        List<Path> pages = new ArrayList<>(List.of(root.resolve("README.md"), root.resolve("ARCHITECTURE.md")));
        pages.addAll(in(root.resolve("docs")));
        pages.addAll(in(root.resolve("docs/decisions")));
        return pages;
    }

    private static List<Path> in(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(page -> page.toString().endsWith(".md"))
                    .sorted()
                    .toList();
        }
    }

    /// Remakes the figures of all pages and all charts. Prints the pages that changed, and figures without a source.
    ///
    /// @param root the root of the sources
    static void makeAll(Path root) throws IOException {
        for (Path page : all(root)) {
            String made = made(root, page);
            if (!made.equals(Files.readString(page))) {
                Files.writeString(page, made);
                System.out.println(root.relativize(page));
            }
            UnsourcedFigures.in(made).forEach(line -> System.out.println(root.relativize(page) + ":" + line));
        }
        RawOutput raw = RawOutput.of(root, root.resolve("README.md"));
        for (Map.Entry<String, Function<RawOutput, String>> chart : Charts.FIGURES.entrySet()) {
            Files.writeString(
                    root.resolve("docs/charts/" + chart.getKey() + ".svg"),
                    chart.getValue().apply(raw));
        }
    }

    /// Returns the page with its blocks remade.
    static String made(Path root, Path page) throws IOException {
        RawOutput raw = RawOutput.of(root, page);
        return BLOCK.matcher(Files.readString(page)).replaceAll(block -> {
            Function<RawOutput, String> figure = FIGURES.get(block.group(2));
            if (figure == null) {
                throw new IllegalStateException(page + ": no figures " + block.group(2));
            }
            return Matcher.quoteReplacement(block.group(1) + figure.apply(raw) + block.group(4));
        });
    }

    /// Returns the blocks of a page as they are.
    static List<String> blocks(String page) {
        return BLOCK.matcher(page).results().map(block -> block.group(3)).toList();
    }

    /// Returns the text of a page outside its blocks.
    static String outside(String page) {
        return BLOCK.matcher(page)
                .replaceAll((MatchResult block) ->
                        "\n".repeat((int) block.group().lines().count() - 1));
    }
}
