package io.cistern.cli.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What a person sees in a browser. The samples have one defect each, which the page must name without help.
final class ReportPageTests {
    private static final int EVENTS = 100_000;
    /// Far more than a frame may take, since machines that test are busy; the figure is printed.
    private static final double MAX_MEDIAN_MILLIS = 100;

    private static final int WIDE = 1200;
    private static final int NARROW = 360;

    @TempDir
    private static Path folder;

    private static @Nullable Chromium browser;

    @BeforeAll
    static void start() throws Exception {
        Optional<Path> program = Chromium.find();
        assumeTrue(program.isPresent(), "there is no Chromium on the path and CHROMIUM names none");
        browser = Chromium.start(program.orElseThrow(), Files.createDirectory(folder.resolve("profile")));
    }

    @AfterAll
    static void end() throws IOException {
        if (browser != null) {
            browser.close();
        }
    }

    @Test
    void aLeakIsNamedByItsSite() throws Exception {
        show("light", WIDE, SampleSnapshots.leak(folder.resolve("leak.json")));

        assertThat(findings())
                .singleElement()
                .asString()
                .contains("Likely leak: 600 MiB live from " + SampleSnapshots.LEAKING_SITE)
                .contains("None of the 200 blocks", "All are from thread indexer", "the device is full in");
    }

    @Test
    void aFragmentedPoolIsNamedWithWhatLiesBetween() throws Exception {
        show("light", WIDE, SampleSnapshots.fragmented(folder.resolve("fragmented.json")));

        assertThat(findings())
                .singleElement()
                .asString()
                .contains("Fragmented: 82 %", "is idle in pieces", "the largest free block is 64.0 MiB")
                .contains("370 blocks from com.acme.io.Labels.keep(Labels.java:44)");
    }

    @Test
    void aStrandedStreamIsNamedWithItsIdleBytes() throws Exception {
        show("light", WIDE, SampleSnapshots.stranded(folder.resolve("stranded.json")));

        assertThat(findings())
                .singleElement()
                .asString()
                .contains("Stranded: 1.50 GiB are idle for stream 0x7f2c00002b00")
                .contains("allocated and freed nothing for the last", "75 % of the reserved memory");
    }

    @Test
    void aHealthyProgramHasNoFindings() throws Exception {
        show("dark", WIDE, SampleSnapshots.healthy(folder.resolve("healthy.json")));

        assertThat(findings()).isEmpty();
        assertThat(text("#summary")).contains("Nothing stands out");
    }

    @Test
    void aRefusedRequestIsShownWithWhatWasTried() throws Exception {
        show("light", WIDE, SampleSnapshots.outOfMemory(folder.resolve("refused.json")));

        assertThat(findings().getFirst().toString())
                .contains("A request for 512 MiB was refused", "Other processes held 1.46 GiB");
        assertThat(text("#out-of-memory"))
                .contains(
                        "4 steps gave 108 MiB in 111 ms",
                        "passed fences\t12.0 MiB\t41 \u00b5s",
                        "trim\t96.0 MiB\t8.7 ms")
                .contains("end it or give it another device");
    }

    @Test
    void severalRunsStandSideBySide() throws Exception {
        show(
                "light",
                WIDE,
                SampleSnapshots.healthy(folder.resolve("first.json")),
                SampleSnapshots.leak(folder.resolve("second.json")));

        assertThat(text("#comparison"))
                .contains("first.json\tsecond.json", "Requested now\t288 MiB\t888 MiB +208 %")
                .contains("second.json, reserved");
    }

    @Test
    void theMapIsReadByKeys() throws Exception {
        show("light", WIDE, SampleSnapshots.leak(folder.resolve("keys.json")));

        browser.evaluate("document.querySelector('.map canvas').focus()");
        browser.press("ArrowRight");
        browser.press("Enter");

        assertThat(text("#block-details"))
                .contains("Pinned block", "State\nlive", "Size\n24.0 MiB", "Thread\nmain", "Model.load");
    }

    @Test
    void tablesSortByTheirHeaders() throws Exception {
        show("light", WIDE, SampleSnapshots.leak(folder.resolve("sorted.json")));

        browser.evaluate("document.querySelectorAll('#holders th button')[1].click()");

        assertThat(browser.evaluate("document.querySelectorAll('#holders th')[1].getAttribute('aria-sort')"))
                .isEqualTo("ascending");
        assertThat(text("#holders tbody tr")).contains("Model.load");
    }

    @ParameterizedTest
    @CsvSource({"light, " + NARROW, "dark, " + NARROW, "light, " + WIDE})
    void nothingIsWiderThanTheWindow(String scheme, int width) throws Exception {
        show(scheme, width, SampleSnapshots.outOfMemory(folder.resolve("narrow.json")));

        assertThat(browser.evaluate("document.documentElement.scrollWidth <= " + width))
                .isEqualTo(true);
        assertThat(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
                .isEqualTo(scheme.equals("dark") ? "rgb(20, 24, 30)" : "rgb(255, 255, 255)");
    }

    @Test
    void manyEventsStaySmooth() throws Exception {
        show("light", WIDE, SampleSnapshots.large(folder.resolve("large.json"), EVENTS));

        Object millis = browser.evaluate("""
                (async () => {
                  const chart = cisternReport.charts[0], whole = chart.last - chart.first, taken = [];
                  for (let i = 0; i < 120; i++) {
                    await new Promise(requestAnimationFrame);
                    const from = performance.now();
                    const part = i < 60 ? 0.93 ** i : 0.93 ** 60;
                    const at = chart.first + whole * (i < 60 ? 0.4 * (1 - part) : 0.2 + (0.6 * (i - 60)) / 60);
                    chart.show(at, at + whole * part);
                    await null; await null; // uPlot draws before the next task.
                    taken.push(performance.now() - from);
                  }
                  return taken.sort((a, b) => a - b)[60].toFixed(2);
                })()
                """);
        System.out.println("median of a frame with " + EVENTS + " events: " + millis + " ms");
        assertThat(Double.parseDouble((String) millis)).isLessThan(MAX_MEDIAN_MILLIS);
    }

    private void show(String scheme, int width, Path... snapshots) throws Exception {
        browser.open(ReportCommandTests.make(folder.resolve("page.html"), snapshots), width, 900, scheme);
        assertThat(browser.evaluate("document.querySelectorAll('main > section').length"))
                .isEqualTo(snapshots.length > 1 ? 8 : 7);
    }

    private List<?> findings() throws Exception {
        return (List<?>) browser.evaluate("[...document.querySelectorAll('#findings li')].map(each => each.innerText)");
    }

    private String text(String selector) throws Exception {
        return (String) browser.evaluate("document.querySelector('" + selector + "').innerText");
    }
}
