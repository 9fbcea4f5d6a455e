package io.cistern.benchmarks.figures;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Every figure that users read is what its raw output says. `tools/benchmarks/measure figures` makes the pages
/// anew. Links are checked in `tools/site`.
final class FiguresTests {
    private static final Path ROOT = root();

    private static Path root() {
        Path at = Path.of("").toAbsolutePath();
        while (!Files.exists(at.resolve("bin/find-jdk"))) {
            at = at.getParent();
        }
        return at;
    }

    static List<Path> pages() throws IOException {
        return Pages.all(ROOT);
    }

    @ParameterizedTest
    @MethodSource("pages")
    void figuresAreThoseOfTheRawOutput(Path page) throws IOException {
        assertThat(Files.readString(page)).isEqualTo(Pages.made(ROOT, page));
    }

    @ParameterizedTest
    @MethodSource("pages")
    void noFigureIsWithoutASource(Path page) throws IOException {
        assertThat(UnsourcedFigures.in(Files.readString(page)))
                .as(page.toString())
                .isEmpty();
    }

    @ParameterizedTest
    @MethodSource("pages")
    void figuresNameTheirMachineAndDate(Path page) throws IOException {
        assertThat(Pages.blocks(Files.readString(page)))
                .allSatisfy(block -> assertThat(block)
                        .containsPattern("(?:H[12]00|development machine|simulated GPU), 20\\d\\d-\\d\\d(?:-\\d\\d)?"));
    }

    static Set<String> charts() {
        return Charts.FIGURES.keySet();
    }

    @ParameterizedTest
    @MethodSource("charts")
    void chartsAreThoseOfTheRawOutput(String chart) throws IOException {
        RawOutput raw = RawOutput.of(ROOT, ROOT.resolve("README.md"));
        assertThat(Files.readString(ROOT.resolve("docs/charts/" + chart + ".svg")))
                .isEqualTo(Charts.FIGURES.get(chart).apply(raw));
    }

    @Test
    void eachChartStandsOnAPage() throws IOException {
        StringBuilder text = new StringBuilder();
        for (Path page : pages()) {
            text.append(Files.readString(page));
        }
        assertThat(names("docs/charts"))
                .containsExactlyInAnyOrderElementsOf(
                        charts().stream().map(chart -> chart + ".svg").toList())
                .allSatisfy(chart -> assertThat(text).contains("(charts/" + chart + ")"));
    }

    static List<String> rawFiles() throws IOException {
        return names("docs/measurements/raw");
    }

    @ParameterizedTest
    @MethodSource("rawFiles")
    void eachRawFileHasItsMachineAndAPageThatUsesIt(String file) throws IOException {
        RawOutput raw = RawOutput.of(ROOT, ROOT.resolve("README.md"));
        assertThat(raw.machine(file.replace(".gz", ""))).matches(".+, 20\\d\\d-\\d\\d-\\d\\d.*");
        assertThat(pages()).anySatisfy(page -> assertThat(page).content().contains("measurements/raw/" + file + ")"));
    }

    private static List<String> names(String folder) throws IOException {
        try (Stream<Path> files = Files.list(ROOT.resolve(folder))) {
            return files.map(file -> file.getFileName().toString()).toList();
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "A pair takes 32 ns.",
                "takes 32 to 47 µs on an H200",
                "it is 9.9 times as fast",
                "0.97 of it, 13.5 ×",
                "338 million of them",
                "takes about a microsecond",
                "then a call costs a few nanoseconds",
                "| gpt2_train | 1.024 | 0 |",
                "| `caching` | 1001 · 1.048 |",
                "A pair takes 32 ns.\n\nAnother paragraph ([rows](../measurements/raw/pairs.jsonl.gz)).",
                "A pair takes 32 ns ([rows](measurements/raw/pairs.jsonl.gz))."
            })
    void aFigureOutsideABlockIsFound(String line) {
        assertThat(UnsourcedFigures.in(line)).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "pages of 2 MiB, aligned to 256 bytes",
                "refused after `10 s`",
                "milliseconds a pass; nanoseconds count here",
                "```\n12 ns\n```",
                "<!-- figures: pairs -->\n| 12 ns |\n<!-- end of figures -->",
                "CUDA 12.4, PyTorch 2.11, 2026-11-23",
                "It takes 32 ns\non an H200 ([rows](../measurements/raw/pairs.jsonl.gz)),\nor 33 ns."
            })
    void whatIsNoMeasuredFigurePasses(String text) {
        assertThat(UnsourcedFigures.in(text)).isEmpty();
    }

    @Test
    void aFigureThatDiffersFromTheRawOutputIsFound() throws IOException {
        Path page = ROOT.resolve("README.md");
        String block = Pages.blocks(Files.readString(page)).getFirst();
        assertThat(Pages.made(ROOT, page)).contains(block).doesNotContain(block.replaceFirst("\\d\\.\\d", "9.9"));
    }
}
