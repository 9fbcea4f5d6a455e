package io.cistern.cli.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.jr.ob.JSON;
import io.cistern.cli.fit.TorchProgram;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import net.razorvine.pickle.Pickler;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What a person sees in a browser. The samples have one defect each, which the page must name without help.
final class ReportPageTests {
    private static final int EVENTS = 100_000;
    /// Far more than a frame may take, since machines that test are busy; the figure is printed.
    private static final double MAX_MEDIAN_MILLIS = 100;

    private static final int WIDE = 1200;
    private static final int NARROW = 360;

    /// Zooms into a chart and moves along it, in 120 frames.
    private static final String MEDIAN_FRAME_MILLIS = """
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
        """;

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
                .contains("None of its 200 blocks", "All are from thread indexer", "the device is full in")
                .contains("From its first recorded allocation to its last, in 19.7 s")
                .contains("it grew by 600 MiB, that is 30.5 MiB/s", "10 of 10 parts of the recording");
    }

    @Test
    void aPickleOfPyTorchIsShown() throws Exception {
        show("light", WIDE, 9, SampleSnapshots.ofPyTorch(folder.resolve("torch.pickle")));

        assertThat(text("#summary")).contains("Live bytes peaked at 12.0 MiB", "4 events in 3 µs");
        assertThat(text("#segments")).isNotEmpty();
    }

    @Test
    void aFreeSegmentIsOnePieceAndItsBlockMayHaveNoStack() throws Exception {
        Map<String, Object> free = Map.of("address", 4096, "size", 64 << 20, "state", "inactive");
        Map<String, Object> segment =
                Map.of("device", 0, "address", 4096, "total_size", 64 << 20, "stream", 0, "blocks", List.of(free));
        List<Map<String, Object>> trace = Stream.of("segment_alloc", "alloc", "free_requested", "free_completed")
                .map(action -> Map.<String, Object>of("action", action, "addr", 4096, "size", 64 << 20, "stream", 0))
                .toList();
        Path file = folder.resolve("free.pickle");
        Files.write(file, new Pickler().dumps(Map.of("segments", List.of(segment), "device_traces", List.of(trace))));
        show("light", WIDE, 9, file);

        assertThat(text("#summary")).contains("100 % without a call stack.", "64.0 MiB are free, in one piece. That");
    }

    @Test
    void whatPyTorchRefusedIsShownBesideAReplay() throws Exception {
        show("light", WIDE, 9, TorchProgram.fragmented(0).write(folder.resolve("oom.pickle")));

        assertThat(text("#fit")).contains("It fits on 850 MiB with Cistern's caching");
        assertThat(text("#comparison"))
                .contains("oom.pickle with caching", "Requests refused")
                .contains(
                        "oom.pickle with caching: a replay with caching on 850 MiB until the request that was refused.",
                        "Recorded\t560 ms\t\u2013",
                        "Requests refused\t1\t\u2013");
        assertThat(text("#summary"))
                .contains(
                        "PyTorch wrote this snapshot after the exception. Segments and idle memory are shown as they"
                                + " were at the refusal, at 560 ms. ",
                        " events in ");
        assertThat(browser.evaluate("document.querySelector('#out-of-memory p a').hash"))
                .isEqualTo("#holders");
        browser.evaluate("document.querySelector('#out-of-memory p a').click()");
        assertThat(rows("#holders table", 0))
                .singleElement()
                .asString()
                .contains("train.py:88 (step)", "160 MiB", "557 ms\t40\t0");

        browser.evaluate("cisternReport.change({ index: 1 })");
        choose("#holders", "end");

        assertThat(text("#timeline")).contains("2 marks");
        assertThat(rows("#holders table", 0))
                .anyMatch(row -> row.contains("train.py:90 (step)") && row.contains("100 MiB"))
                .anyMatch(row -> row.contains("train.py:88 (step)") && row.contains("160 MiB"));
        browser.evaluate("cisternReport.maps[0].choose({ segment: 0, block:"
                + " cisternReport.maps[0].segments[0].blocks.findIndex(each => each.state === 'live') })");
        assertThat(text("#block-details")).contains("forward(", "step(/home/me/train.py:");
    }

    /// After the refusal, the exception frees what was live, and `empty_cache` gives the segments back but one.
    @Test
    void theMomentOfTheRefusalIsShownThoughMemoryWasFreedSince() throws Exception {
        TorchProgram program = TorchProgram.fragmented(0);
        for (int segment = 0; segment < 40; segment++) {
            long base = 0x7f00_0000_0000L + (segment * 32L << 20);
            program.free(base + (8 << 20));
            if (segment > 0) {
                program.release(base);
            }
        }
        show("light", WIDE, 9, program.write(folder.resolve("since.pickle")));

        assertThat(findings().getFirst().toString())
                .contains("A request for 100 MiB was refused", "At that time 800 MiB were reserved, of which 160 MiB");
        assertThat(findings().get(1).toString())
                .contains("Fragmented: 80 % of the memory reserved", "640 MiB of 800 MiB are idle next to live blocks")
                .contains("in 80 pieces; the largest is 8.00 MiB", "40 live blocks keep the pieces apart: train.py:88");
        assertThat(text("#fragmentation"))
                .contains("Segments by stream, at the refusal", "default stream\t800 MiB\t160 MiB\t640 MiB 80 %");
        assertThat(browser.evaluate("cisternReport.maps[0].segments.length")).isEqualTo(40);

        assertThat(text("#choice")).contains("Moment");
        browser.evaluate("(() => { const all = document.querySelectorAll('#choice select'), last = all[all.length - 1];"
                + " last.value = last.options[1].value; last.dispatchEvent(new Event('change')); })()");

        assertThat(text("#fragmentation"))
                .contains("Segments by stream, at the snapshot", "default stream\t20.0 MiB\t0 B\t20.0 MiB 100 %");
        assertThat(findings().getLast().toString())
                .contains("100 % of the reserved memory is idle at the snapshot")
                .contains("The program may have freed it after the refusal of 100 MiB.")
                .doesNotContain("normal cache", "empty_cache");
    }

    @Test
    void whatWasFreedAfterTheRefusalIsLiveInACisternSnapshotToo() throws Exception {
        show("light", WIDE, SampleSnapshots.freedAfterTheRefusal(folder.resolve("after.json")));

        assertThat(text("#summary"))
                .contains("Segments and idle memory are shown as they were at the refusal")
                .contains("live 2.16 GiB");
        assertThat(rows("#fragmentation table", 0)).singleElement().asString().contains("\t2.25 GiB\t2.16 GiB\t");
        assertThat(text("#page")).doesNotContain("normal cache");
    }

    /// Without a history the moment of the refusal can't be worked out.
    @Test
    void withoutAHistoryThePageSaysThatItShowsALaterMoment() throws Exception {
        Path file = SampleSnapshots.freedAfterTheRefusal(folder.resolve("unrecorded.json"));
        Files.writeString(
                file,
                Files.readString(file)
                        .replaceFirst("\"history\":\\{.*\\},\"outOfMemory\"", "\"history\":null,\"outOfMemory\""));
        show("light", WIDE, file);

        assertThat(text("#summary")).contains("at the snapshot, after the refusal: memory may have been freed.");
        assertThat(findings().toString())
                .contains("caching held 2.25 GiB, of which 2.16 GiB were live")
                .contains("The program may have freed it after the refusal of 512 MiB.")
                .doesNotContain("normal cache");
    }

    @Test
    void aReportOpensWhereARequestWasRefusedElseOnTheLastRun() throws Exception {
        Path refused = SampleSnapshots.outOfMemory(folder.resolve("refused-first.json"));
        Path healthy = SampleSnapshots.healthy(folder.resolve("healthy-last.json"));
        TorchProgram zero = new TorchProgram(0).segment(1L << 40, 20 << 20).allocate(1L << 40, 8 << 20, 5);
        TorchProgram one = new TorchProgram(1).segment(1L << 41, 20 << 20).allocate(1L << 41, 2 << 20, 7);
        Path devices = TorchProgram.write(folder.resolve("second-device.pickle"), zero, one.refused(1 << 30, 0, 90));

        show("light", WIDE, refused, healthy);
        assertThat(browser.evaluate("document.title")).asString().startsWith("refused-first.json");
        show("light", WIDE, healthy, SampleSnapshots.leak(folder.resolve("leak-last.json")));
        assertThat(browser.evaluate("document.title")).asString().startsWith("leak-last.json");
        show("light", WIDE, 9, devices);
        assertThat(browser.evaluate("cisternReport.state.device")).isEqualTo(1);
        assertThat(text("#fit").indexOf("Device 1: ")).isBetween(0, text("#fit").indexOf("Device 0: "));
    }

    /// Each step has two marks; the last ones lie where the request was refused.
    @Test
    void manyMarksAreThinnedOutButForRefusals() throws Exception {
        TorchProgram program = new TorchProgram(0).segment(1L << 40, 64 << 20);
        for (int step = 0; step < 150; step++) {
            program.mark("Optimizer.step").allocate(1L << 40, 1 << 20, 12).mark("Optimizer.step ends");
            program.free(1L << 40);
        }
        show("light", WIDE, 9, program.refused(1 << 30, 0, 90).write(folder.resolve("marks.pickle")));

        String drawn =
                "JSON.stringify(cisternReport.charts[1].drawn.map(({ mark, x }) => [mark.isBad, Math.round(x)]))";
        List<Object> marks = JSON.std.listFrom((String) browser.evaluate(drawn));
        assertThat(marks).hasSizeBetween(15, 30).last().asString().startsWith("[true");
        assertThat(IntStream.range(1, marks.size())
                        .map(i -> (int) ((List<?>) marks.get(i)).getLast()
                                - (int) ((List<?>) marks.get(i - 1)).getLast()))
                .allMatch(distance -> distance >= 39);
        assertThat(text("#timeline")).contains("301 marks");
        assertThat((String) browser.evaluate("cisternReport.charts[1].labels.join()"))
                .contains("\u2715 refused 1.00 GiB,");
        browser.evaluate("document.querySelectorAll('#timeline details').forEach(each => each.open = true)");
        assertThat(text("#timeline")).contains("100 later marks left out of this list.", "refused 1.00 GiB");

        browser.evaluate("cisternReport.charts[1].show(0, 0.02)");
        browser.evaluate("new Promise(requestAnimationFrame)");
        assertThat(JSON.std.listFrom((String) browser.evaluate(drawn))).hasSizeGreaterThan(5);
    }

    /// Three of the five segments from before the recording are given back, one of which held no block.
    @Test
    void olderSegmentsHoldTheirOlderBlocks() throws Exception {
        int mib = 1 << 20;
        TorchProgram program = new TorchProgram(0);
        for (int segment = 0; segment < 4; segment++) {
            program.segment((1L << 40) + 64L * mib * segment, 64L * mib)
                    .allocate((1L << 40) + 64L * mib * segment, 40L * mib, 20 + segment);
        }
        program.segment(1L << 41, 64L * mib).forget();
        for (int step = 0; step < 20; step++) {
            program.allocate((1L << 40) + 48L * mib, mib, 30).free((1L << 40) + 48L * mib);
        }
        for (int segment = 1; segment < 3; segment++) {
            program.free((1L << 40) + 64L * mib * segment).release((1L << 40) + 64L * mib * segment);
        }
        program.release(1L << 41);
        show("light", WIDE, 9, program.write(folder.resolve("older.pickle")));

        String atFirst = "cisternReport.charts[2].read(0)";
        assertThat(text("#fragmentation .chart .legend"))
                .contains("idle, for the default stream\n48.0 MiB", "requested\n80.0 MiB")
                .doesNotContain("never used");
        browser.evaluate(atFirst);
        assertThat(text("#fragmentation .chart .legend"))
                .contains("idle, for the default stream\n159 MiB", "requested\n161 MiB");
    }

    /// As after each `empty_cache` of a loop.
    @Test
    void aSegmentThatComesAgainAtItsAddressIsReservedOnce() throws Exception {
        TorchProgram program = new TorchProgram(0);
        for (int step = 0; step < 5; step++) {
            program.segment(1L << 40, 64 << 20)
                    .allocate(1L << 40, 60 << 20, 10)
                    .free(1L << 40)
                    .release(1L << 40);
        }
        show("light", WIDE, 9, program.write(folder.resolve("again.pickle")));

        assertThat(text("#comparison")).contains("Reserved at most\t64.0 MiB\t");
    }

    /// The program goes on after the refusal at 2 ms, and marks what it does.
    @Test
    void theLinesOfAReplayEndWithIt() throws Exception {
        TorchProgram program = new TorchProgram(0).segment(1L << 40, 64 << 20).allocate(1L << 40, 40 << 20, 12);
        program.refused(80 << 20, 64 << 20, 90).mark("retry").free(1L << 40);
        for (int step = 0; step < 50; step++) {
            program.allocate(1L << 40, 8 << 20, 20).mark("step " + step).free(1L << 40);
        }
        show("light", WIDE, 9, program.write(folder.resolve("goes-on.pickle")));

        browser.evaluate("cisternReport.charts[0].read(0.002)");
        assertThat(text("#comparison .legend"))
                .contains("goes-on.pickle with caching, reserved\n120 MiB", "goes-on.pickle, requested\n40.0 MiB");
        browser.evaluate("cisternReport.charts[0].read(0.003)");
        assertThat(text("#comparison .legend"))
                .contains(
                        "goes-on.pickle with caching, reserved\nended",
                        "goes-on.pickle with caching, requested\nended",
                        "goes-on.pickle, reserved\n64.0 MiB");
        browser.evaluate("cisternReport.change({ index: 1 })");
        assertThat(text("#timeline")).contains("2 marks", "The curves end where the replay does.");
    }

    /// Of the leak's 478 blocks 400 are from before the recording. Line 60 frees what it allocates.
    @Test
    void leaksAreThoseOfFit() throws Exception {
        TorchProgram program = new TorchProgram(0);
        for (int block = 0; block < 478; block++) {
            if (block == 400) {
                program.forget();
            }
            long address = (1L << 40) + (32L << 20) * block;
            program.segment(address, 20 << 20).allocate(address, 2 << 20, 41);
            program.allocate(address + (4 << 20), 1 << 20, 60).free(address + (4 << 20));
        }
        show("light", WIDE, 9, program.write(folder.resolve("ring.pickle")));

        assertThat(text("#fit"))
                .contains("looks like a leak\ntrain.py:41 (step): 956 MiB that grew in 10 of 10 parts of");
        assertThat(findings().getFirst().toString())
                .contains("Likely leak: 956 MiB live from train.py:41 (step)")
                .contains("It holds 478 live blocks, and grew in 10 of 10 parts of the recording, with")
                .contains("None of its 478 blocks was ever freed.");

        browser.evaluate("cisternReport.change({ index: 1 })");

        assertThat(findings())
                .filteredOn(finding -> finding.toString().contains("leak"))
                .singleElement()
                .asString()
                .contains("Likely leak: 956 MiB live from train.py:41 (step)");
    }

    @Test
    void theDefaultStreamIsNamed() throws Exception {
        show("light", WIDE, 9, TorchProgram.fragmented(0).write(folder.resolve("stream.pickle")));

        assertThat(text("#page"))
                .contains(
                        "On device 0 for the default stream.",
                        "idle, for the default stream",
                        "100 MiB for the default")
                .doesNotContain("0x0");
        assertThat(rows("#traffic table", 0)).singleElement().asString().startsWith("default stream\n");
    }

    /// After the refusal, the exception frees a block.
    @Test
    void whoHeldTheMemoryAtTheRefusalIsShownFirst() throws Exception {
        TorchProgram program = TorchProgram.ofManyEvents(100).allocate(1L << 41, 4096, 33);
        show("light", WIDE, 9, program.refused(1 << 30, 0, 90).free(1L << 41).write(folder.resolve("then.pickle")));

        assertThat(rows("#holders table", 0))
                .hasSize(2)
                .anyMatch(row -> row.contains("train.py:33") && row.contains("4.00 KiB\t< 1 %\t1\t"));
        assertThat(text("#holders caption")).contains("at the peak: refusal of 1.00 GiB, at ");
        choose("#holders", "end");
        assertThat(rows("#holders table", 0)).singleElement().asString().contains("train.py:12");
    }

    /// As fit's text has them, in a short history and in a long one. At the end of the long one less was requested.
    @Test
    void whoHoldsWhatIsThatOfThePeak() throws Exception {
        show("light", WIDE, 9, TorchProgram.fragmented(0).write(folder.resolve("peak.pickle")));

        assertThat(text("#fit")).contains("held at the peak\n640 MiB, 80 % of 800 MiB: train.py:70 (step), 160 blocks");
        assertThat(text("#holders caption")).contains("200 blocks, 800 MiB at the peak, at 239 ms; ");
        assertThat(rows("#holders table", 0))
                .hasSize(2)
                .first()
                .asString()
                .contains("train.py:70 (step)", "640 MiB\t80 %\t160\t");

        TorchProgram program = TorchProgram.ofManyEvents(50).allocate(1L << 41, 4096, 33);
        program.refused(1 << 30, 0, 90).free(1L << 41).refused(1 << 20, 0, 91);
        show("light", WIDE, 9, program.write(folder.resolve("long-peak.pickle")));

        assertThat(text("#summary")).contains("are drawn as one.");
        assertThat(text("#holders caption")).contains("2 blocks, 1.00 MiB at the peak: refusal of 1.00 GiB, at ");
    }

    /// Device 1 peaks after device 0.
    @Test
    void eachDeviceIsShownAtItsOwnPeak() throws Exception {
        TorchProgram zero = new TorchProgram(0).segment(1L << 40, 20 << 20).allocate(1L << 40, 8 << 20, 5);
        TorchProgram one = new TorchProgram(1).segment(1L << 41, 20 << 20).allocate(1L << 41, 2 << 20, 7);
        zero.free(1L << 40);
        one.allocate((1L << 41) + (4 << 20), 1 << 20, 7).free((1L << 41) + (4 << 20));
        show("light", WIDE, 9, TorchProgram.write(folder.resolve("peaks.pickle"), zero, one));

        assertThat(text("#holders caption")).contains("3 blocks, 11.0 MiB at the peak of each device; ");

        browser.evaluate("cisternReport.change({ device: 1 })");

        assertThat(text("#holders caption")).contains("2 blocks, 3.00 MiB at the peak, at 2 ms; ");
    }

    /// Before the refusal more was live, but less was requested.
    @Test
    void theSummaryIsAboutThePeakOfFit() throws Exception {
        long base = 1L << 40;
        Path file = new TorchProgram(0)
                .segment(base, 64 << 20)
                .allocate(base, 9 << 20, 10)
                .allocate(base + (9 << 20), 1 << 20, 20)
                .allocate(base + (10 << 20), 4 << 20, 30)
                .free(base + (10 << 20))
                .refused(80 << 20, 1 << 20, 40)
                .write(folder.resolve("refused.pickle"));
        show("light", WIDE, 9, file);

        assertThat(text("#fit"))
                .contains("peak requested\n90.0 MiB after 6 ms", "held at the peak\n9.00 MiB, 90 % of 10.0 MiB");
        assertThat(text("#summary"))
                .contains(
                        "Live bytes, with the refused request of 80.0 MiB, peaked at 90.0 MiB, at 6 ms. Of the 10.0 MiB"
                                + " without it, 90 % from train.py:10 (step), 10 % from train.py:20 (step).");
    }

    @Test
    void whatWaitsForAnotherStreamIsCountedApart() throws Exception {
        TorchProgram program = new TorchProgram(0).segment(1L << 40, 64 << 20);
        for (int block = 0; block < 30; block++) {
            program.allocate((1L << 40) + block * (1 << 20), 1 << 20, 41).requestFree((1L << 40) + block * (1 << 20));
        }
        show("light", WIDE, 9, program.write(folder.resolve("waiting.pickle")));

        assertThat(text("#summary"))
                .contains(
                        "Live bytes peaked at 30.0 MiB",
                        ": 97 % freed, but waiting for another stream (record_stream)");
        assertThat(text("#comparison")).contains("Live at most\t30.0 MiB\t30.0 MiB\n");
        choose("#holders", "end");
        assertThat(rows("#holders table", 0))
                .singleElement()
                .asString()
                .contains("freed, but waiting for another stream (record_stream)\t30.0 MiB\t100 %\t30");
        assertThat(text("#traffic")).contains("30 frees waited for other streams");
        assertThat(findings()).singleElement().asString().contains("Stream.wait_stream");
    }

    /// The second pair is not compared with the replay of the first.
    @Test
    void aReplayIsComparedWithWhatItReplays() throws Exception {
        Path first = TorchProgram.ofManyEvents(1).write(folder.resolve("one.pickle"));
        Path second = TorchProgram.ofManyEvents(1)
                .allocate((1L << 40) + (1 << 24), 1 << 26, 31)
                .write(folder.resolve("two.pickle"));
        show("light", WIDE, 11, first, second);

        assertThat(text("#comparison")).contains("Live at most\t64.4 MiB\t64.4 MiB\t65.0 MiB +1 %\t65.0 MiB\n");
    }

    @Test
    void eachDeviceIsComparedWithItsOwnReplay() throws Exception {
        TorchProgram zero = new TorchProgram(0).segment(1L << 40, 20 << 20).allocate(1L << 40, 8 << 20, 5);
        TorchProgram one = new TorchProgram(1).segment(1L << 41, 20 << 20).allocate(1L << 41, 2 << 20, 7);
        show("light", WIDE, 9, TorchProgram.write(folder.resolve("devices.pickle"), zero, one));

        assertThat(text("#summary"))
                .contains("Live bytes of device 0 peaked at 8.00 MiB", "Live bytes of device 1 peaked at 2.00 MiB");
        assertThat(text("#comparison"))
                .contains("Live at most\t8.00 MiB\t8.00 MiB\n", "Live at most\t2.00 MiB\t2.00 MiB\n");

        browser.evaluate("cisternReport.change({ device: 1 })");

        assertThat(text("#comparison"))
                .contains("devices.pickle with caching, device 1", "Live at most\t2.00 MiB\t2.00 MiB\n")
                .doesNotContain("?");
    }

    @Test
    void whatASnapshotCannotTellIsNotDenied() throws Exception {
        Path none = folder.resolve("none.pickle");
        Files.write(none, new Pickler().dumps(Map.of("segments", List.of(), "device_traces", List.of())));
        show("light", WIDE, 7, none);
        assertThat(text("#summary")).contains("No history, so leaks and refusals can't be seen.");
        assertThat(text("#out-of-memory")).contains("No history, so a refusal can't be seen.");

        TorchProgram load = new TorchProgram(0).segment(1L << 40, 64 << 20);
        for (int layer = 0; layer < 60; layer++) {
            load.allocate((1L << 40) + layer * (1 << 20), 1 << 20, 12);
        }
        show("light", WIDE, 9, load.write(folder.resolve("load.pickle")));
        assertThat(text("#summary")).contains("Leaks can't be seen: no block was freed, as while a model loads.");
        assertThat(text("#traffic")).doesNotContain("unknown", "thread");
    }

    @Test
    void whatGrewBetweenTwoSnapshotsHasALink() throws Exception {
        Path first = TorchProgram.ofManyEvents(1).write(folder.resolve("first.pickle"));
        Path second =
                TorchProgram.ofManyEvents(2).allocate(1L << 40, 1 << 21, 31).write(folder.resolve("second.pickle"));
        show("light", WIDE, 11, first, second);

        assertThat(text("#grown")).contains("What grew", "+2.00 MiB      +1 block   train.py:31 (step)");
        assertThat(text("nav")).contains("What grew");
    }

    /// Each heading says which file it is about, though both have one name.
    @Test
    void snapshotsOfOneNameAreNumbered() throws Exception {
        Path file = TorchProgram.fragmented(0).write(folder.resolve("same.pickle"));
        show("light", WIDE, 11, file, file);

        assertThat(text("nav")).contains("Would it fit? same.pickle (1)", "Would it fit? same.pickle (3)");
    }

    /// 201,000 events: small blocks are shown together, and the peak is that of the file.
    @Test
    void theSmallBlocksOfALongHistoryAreShownTogether() throws Exception {
        Path file = TorchProgram.ofManyEvents(660).write(folder.resolve("long.pickle"));
        show("light", WIDE, 9, file);

        assertThat(Files.size(folder.resolve("page.html"))).isLessThan(8 << 20);
        assertThat(text("#summary"))
                .contains("events in ", "; most blocks below ", " that were freed are drawn as one.")
                .contains("Live bytes peaked at 64.4 MiB");
        assertThat(text("#timeline")).contains("train.py:88 (step)", "together");
        assertThat(rows("#traffic table", 0)).singleElement().asString().contains("\t66,661\t41.5 GiB\t66,660\t0\t");
        assertThat(text("#traffic"))
                .contains("No free had to wait for another stream.")
                .doesNotContain("together");
        assertThat(browser.evaluate(MEDIAN_FRAME_MILLIS).toString())
                .satisfies(millis -> assertThat(Double.parseDouble(millis)).isLessThan(MAX_MEDIAN_MILLIS));
    }

    /// A division by a time that did not pass shows nothing, or stops the page.
    @Test
    void aSnapshotWithOneEventOrNoneIsShown() throws Exception {
        for (int events = 0; events < 2; events++) {
            Path file = folder.resolve("few-" + events + ".pickle");
            Map<String, Object> event = Map.of("action", "alloc", "addr", 512, "size", 512, "stream", 0, "time_us", 7);
            Files.write(
                    file,
                    new Pickler()
                            .dumps(Map.of(
                                    "segments",
                                    List.of(),
                                    "device_traces",
                                    List.of(Collections.nCopies(events, event)))));
            show("light", WIDE, events == 0 ? 7 : 9, file);

            assertThat(text("#summary")).contains(events == 0 ? "No history" : "Live bytes peaked at 512 B");
        }
    }

    @Test
    void aBurstIsNoLeakAndAPauseHidesNone() throws Exception {
        show("light", WIDE, SampleSnapshots.burst(folder.resolve("burst.json")));
        assertThat(findings()).isEmpty();

        show("light", WIDE, SampleSnapshots.leakAfterAPause(folder.resolve("paused.json")));
        assertThat(findings())
                .singleElement()
                .asString()
                .contains("Likely leak: 300 MiB", "in 9.9 s, it grew by 300 MiB, that is 30.3 MiB/s");
    }

    @Test
    void growthWithoutCallStacksIsNotCalledALeak() throws Exception {
        show("light", WIDE, SampleSnapshots.growthWithoutStacks(folder.resolve("unknown.json")));

        assertThat(findings()).isEmpty();
    }

    @Test
    void aFragmentedPoolIsNamedWithWhatLiesBetween() throws Exception {
        show("light", WIDE, SampleSnapshots.fragmented(folder.resolve("fragmented.json")));

        assertThat(findings())
                .singleElement()
                .asString()
                .contains("Fragmented: 78 %", "is idle in pieces", "in 377 pieces; the largest is 15.0 MiB")
                .contains("Another 64.0 MiB are wholly free segments")
                .contains(
                        "370 live blocks keep the pieces apart: thread loader at com.acme.io.Labels.keep(Labels.java:44)");
    }

    /// 40 segments hold a live block each between pieces of 8 MiB; 60 are wholly free, of which 20 lie at the end.
    @Test
    void whollyFreeSegmentsAreCachedAndNotFragmented() throws Exception {
        int mib = 1 << 20;
        List<Map<String, Object>> segments = IntStream.range(0, 100)
                .mapToObj(index -> {
                    long address = (1L << 40) + 32L * mib * index;
                    return Map.of(
                            "device",
                            0,
                            "address",
                            address,
                            "total_size",
                            20L * mib,
                            "stream",
                            0,
                            "blocks",
                            index >= 40
                                    ? List.of(block(address, 20L * mib, "inactive"))
                                    : List.of(
                                            block(address, 8L * mib, "inactive"),
                                            block(address + 8L * mib, 4L * mib, "active_allocated"),
                                            block(address + 12L * mib, 8L * mib, "inactive")));
                })
                .toList();
        show("light", WIDE, 7, pickled("split.pickle", segments));

        assertThat(findings())
                .singleElement()
                .asString()
                .contains("Fragmented: 32 % of the memory reserved for the default stream is idle in pieces")
                .contains("640 MiB of 1.95 GiB are idle next to live blocks, in 80 pieces; the largest is 8.00 MiB")
                .contains("Another 1.17 GiB are wholly free segments, which are cached, not fragmented.");
        assertThat(rows("#fragmentation table", 0))
                .singleElement()
                .asString()
                .contains("default stream\t1.95 GiB\t160 MiB\t1.80 GiB 92 %\n640 MiB fragmented\n\t140\t20.0 MiB");

        show("light", WIDE, 7, pickled("whole.pickle", segments.subList(39, 100)));

        assertThat(findings())
                .singleElement()
                .asString()
                .contains("100 % of the reserved memory is idle at the snapshot")
                .contains(
                        "1.19 GiB are free, 1.17 GiB of them in wholly free segments, the largest piece being 20.0 MiB");
    }

    private static Map<String, Object> block(long address, long byteSize, String state) {
        return Map.of("address", address, "size", byteSize, "state", state);
    }

    /// Writes a snapshot without a history.
    private static Path pickled(String name, List<?> segments) throws IOException {
        return Files.write(
                folder.resolve(name), new Pickler().dumps(Map.of("segments", segments, "device_traces", List.of())));
    }

    @Test
    void aFragmentedPoolAtRestIsNotCalledStranded() throws Exception {
        show("light", WIDE, SampleSnapshots.fragmentedPoolAtRest(folder.resolve("pool.json")));

        assertThat(findings())
                .singleElement()
                .asString()
                .contains("Fragmented: ", "stream 0x7f2c00002b00 of pool 1 'tokens' (caching)", "94 pieces")
                .contains("the largest is 15.2 MiB. A larger request needs new memory from the driver.")
                .contains("thread tokenizer at com.acme.io.Vocabulary.add(Vocabulary.java:8) (65 blocks")
                .contains("thread tokenizer at com.acme.io.Merges.add(Merges.java:8) (27 blocks")
                .doesNotContain("Stranded");
    }

    @Test
    void aPoolIsNamedOnce() throws Exception {
        show("light", WIDE, SampleSnapshots.fragmentedPoolAtRest(folder.resolve("named.json")));

        assertThat(text("#summary .table")).containsOnlyOnce("tokens");
    }

    @Test
    void figuresThatAreZeroEverywhereAreLeftOut() throws Exception {
        show("light", WIDE, SampleSnapshots.healthy(folder.resolve("figures.json")));

        browser.evaluate("document.querySelectorAll('#summary details').forEach(each => each.open = true)");

        assertThat(text("#summary"))
                .contains("largest_free_block", "2 figures left out: 0 on all devices")
                .doesNotContain("num_ooms", "num_alloc_retries");
    }

    @Test
    void wordsAreExplainedByKeys() throws Exception {
        show("light", WIDE, SampleSnapshots.outOfMemory(folder.resolve("words.json")));

        for (String section : List.of("summary", "timeline", "segments", "fragmentation", "traffic", "out-of-memory")) {
            browser.evaluate("document.querySelector('#" + section + " .words summary').focus()");
            browser.press("Enter");
            assertThat(browser.evaluate("""
                    [...document.querySelectorAll('#%s .words dd')].every(each => each.checkVisibility()
                        && each.textContent.length > 10)""".formatted(section))).as(section).isEqualTo(true);
        }
        assertThat(text("#summary .words")).contains("reserved", "idle", "stranded", "segment");
        assertThat(text("#segments .words")).contains("waiting");
    }

    @Test
    void aStrandedStreamIsNamedWithItsIdleBytes() throws Exception {
        show("light", WIDE, SampleSnapshots.stranded(folder.resolve("stranded.json")));

        assertThat(findings())
                .singleElement()
                .asString()
                .contains("Stranded: 1.50 GiB are idle for stream 0x7f2c00002b00")
                .contains("allocated and freed nothing for the last", "75 % of the reserved memory")
                .contains("thread prefetch at com.acme.io.Prefetch.stage(Prefetch.java:63) (24 blocks, 960 MiB)");
        assertThat(rows("#traffic table", 1))
                .anySatisfy(row -> assertThat(row)
                        .contains(
                                "stream 0x7f2c00002b00",
                                "thread prefetch at com.acme.io.Prefetch.stage(Prefetch.java:63)"));
    }

    @Test
    void noNoteRepeatsWhatCardsSay() throws Exception {
        show("light", WIDE, SampleSnapshots.strandedInLargePieces(folder.resolve("pieces.json")));

        assertThat(findings())
                .hasSize(3)
                .allSatisfy(each -> assertThat(each.toString()).contains("Stranded: 400 MiB"));
    }

    @Test
    void agesAndRestsCountBackFromTheSnapshot() throws Exception {
        show("light", WIDE, SampleSnapshots.betweenPauses(folder.resolve("rest.json")));

        assertThat(rows("#traffic table", 1)).singleElement().asString().contains("\t20 s\t");
        assertThat(rows("#fragmentation table", 0)).singleElement().asString().endsWith("\t20 s");

        show("light", WIDE, SampleSnapshots.leakAfterAPause(folder.resolve("age.json")));
        assertThat(rows("#holders table", 0)).first().asString().contains("EmbeddingCache", "\t9.9 s\t");
    }

    @Test
    void peaksDoNotLastIntoPauses() throws Exception {
        show("light", WIDE, SampleSnapshots.betweenPauses(folder.resolve("pauses.json")));

        Object drawn = browser.evaluate("""
                (() => {
                  const { data, scales } = cisternReport.charts[0].plot, [seconds, live, reserved] = data;
                  const at = (moment) => seconds.findLastIndex((each) => each <= moment);
                  return [live[at(9.9)], reserved[at(9.9)], Math.max(...live) / 2 ** 20, live[at(11.1)],
                    live.some((each, i) => each > reserved[i]), seconds.at(-1), scales.x.max].join(" ");
                })()
                """);
        assertThat(drawn).isEqualTo("0 0 40 0 false 31 31");
    }

    @Test
    void durationsAreRoundedBeforeTheyAreSplit() throws Exception {
        show("light", WIDE, SampleSnapshots.lostEvents(folder.resolve("lost.json")));
        String format = Files.readString(Path.of("src/main/resources/io/cistern/cli/report/format.js"));

        assertThat(browser.evaluate("(() => {" + format
                        + "; return [119.4, 119.6, 179.7, 7199.8, 10790].map(secondsText).join(); })()"))
                .isEqualTo("119 s,2 min 0 s,3 min 0 s,2 h 0 min,3 h 0 min");
    }

    @Test
    void whatIsUnknownIsNotDrawn() throws Exception {
        show("light", WIDE, SampleSnapshots.lostEvents(folder.resolve("lost.json")));

        assertThat(browser.evaluate("""
                cisternReport.charts.every(({ plot }) => plot.data[0][0] > 1.9 && plot.scales.x.min > 1.9)
                """)).isEqualTo(true);
    }

    @ParameterizedTest
    @ValueSource(ints = {700, 1100, 1440})
    void tablesAndLinksFitWithoutScrolling(int width) throws Exception {
        show(
                "light",
                width,
                SampleSnapshots.large(folder.resolve("fit.json"), 5_000),
                SampleSnapshots.fragmentedPoolAtRest(folder.resolve("fit-2.json")));
        for (int run = 0; run < 2; run++) {
            browser.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)");
            assertThat(browser.evaluate("""
                    [...document.querySelectorAll('nav ul, .table, .table *')].filter((each) => each.scrollWidth
                        > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline'
                        || each.getBoundingClientRect().right > document.documentElement.clientWidth)
                        .map((each) => each.outerHTML.slice(0, 200)).join()""")).isEqualTo("");
            assertThat(browser.evaluate("getComputedStyle(document.querySelector('tbody tr')).display"))
                    .isEqualTo("table-row");
            browser.evaluate("cisternReport.change({ index: 0 })");
        }
    }

    @Test
    void rowsAreBlocksInANarrowWindow() throws Exception {
        show("light", NARROW, SampleSnapshots.large(folder.resolve("blocks.json"), 5_000));

        assertThat(browser.evaluate("""
                [...document.querySelector('#traffic tbody').rows].every((row) => [...row.cells].every((cell, i) =>
                    i === 0 || cell.getBoundingClientRect().top >= row.cells[i - 1].getBoundingClientRect().bottom - 1)
                    && getComputedStyle(row.cells[1], '::before').content.includes('Allocations'))""")).isEqualTo(true);
        assertThat(browser.evaluate("document.documentElement.scrollWidth <= " + NARROW))
                .isEqualTo(true);
    }

    /// The words of a header are buttons there, and a table that does not sort has none.
    @Test
    void narrowTablesSayWhatTheirHeadersDo() throws Exception {
        show("light", NARROW, 9, TorchProgram.fragmented(0).write(folder.resolve("narrow.pickle")));

        assertThat(browser.evaluate(
                        "getComputedStyle(document.querySelector('#holders thead tr'), '::before').content"))
                .isEqualTo("\"Sort by\"");
        assertThat(browser.evaluate("getComputedStyle(document.querySelector('.figures thead')).display"))
                .isEqualTo("none");
    }

    @Test
    void theAnswerOfFitNeedsNoScrollingInANarrowWindow() throws Exception {
        Path first = TorchProgram.fragmented(0).write(folder.resolve("narrow-1.pickle"));
        Path second = TorchProgram.ofManyEvents(1).write(folder.resolve("narrow-2.pickle"));
        show("light", NARROW, 11, first, second);

        assertThat(browser.evaluate("""
                [...document.querySelectorAll('#fit, #fit *, #grown, #grown *')].filter(each => each.scrollWidth
                    > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline')
                    .map(each => each.outerHTML.slice(0, 200)).join()""")).isEqualTo("");
        assertThat(text("#fit")).contains("held at the peak\n640 MiB");
    }

    @Test
    void aLocaleThatIntlRefusesStopsNoChart() throws Exception {
        browser.open(Files.writeString(folder.resolve("empty.html"), "<p>"), WIDE, 900, "light");
        assertThat(browser.evaluate("navigator.language")).isEqualTo(Chromium.LOCALE);

        show("light", WIDE, SampleSnapshots.healthy(folder.resolve("locale.json")));

        assertThat(browser.evaluate(
                        "navigator.language + cisternReport.charts.every(({ plot }) => plot.data.length > 1)"))
                .isEqualTo("en-UStrue");
    }

    @Test
    void barsBeginAtTheLeftBelowTheirFigures() throws Exception {
        show("light", WIDE, SampleSnapshots.leak(folder.resolve("bars.json")));

        assertThat((String) browser.evaluate("getComputedStyle(document.querySelector('td.bar')).backgroundImage"))
                .startsWith("linear-gradient(to right, ");
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
        assertThat(text("#holders caption")).contains(": refusal of 512 MiB, at ");
        assertThat(text("#out-of-memory"))
                .contains(
                        "4 steps freed 108 MiB in 111 ms",
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
                .contains("first.json\tsecond.json", "Requested at the snapshot\t288 MiB\t888 MiB +208 %")
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

        Object millis = browser.evaluate(MEDIAN_FRAME_MILLIS);
        System.out.println("median of a frame with " + EVENTS + " events: " + millis + " ms");
        assertThat(Double.parseDouble((String) millis)).isLessThan(MAX_MEDIAN_MILLIS);
    }

    private void show(String scheme, int width, Path... snapshots) throws Exception {
        show(scheme, width, snapshots.length > 1 ? 8 : 7, snapshots);
    }

    private void show(String scheme, int width, int sections, Path... snapshots) throws Exception {
        browser.open(ReportCommandTests.make(folder.resolve("page.html"), snapshots), width, 900, scheme);
        assertThat(browser.evaluate("document.querySelectorAll('main > section').length"))
                .isEqualTo(sections);
    }

    /// Chooses in the first choice of a section.
    private static void choose(String section, String value) throws Exception {
        browser.evaluate("(() => { const choice = document.querySelector('" + section + " select'); choice.value = '"
                + value + "'; choice.dispatchEvent(new Event('change')); })()");
    }

    private List<?> findings() throws Exception {
        return (List<?>) browser.evaluate("[...document.querySelectorAll('#findings li')].map(each => each.innerText)");
    }

    /// The texts of a table's rows.
    private List<String> rows(String selector, int index) throws Exception {
        List<?> rows = (List<?>) browser.evaluate("[...document.querySelectorAll('" + selector + "')[" + index
                + "].querySelectorAll('tbody tr')].map(each => each.innerText)");
        return rows.stream().map(Object::toString).toList();
    }

    private String text(String selector) throws Exception {
        return (String) browser.evaluate("document.querySelector('" + selector + "').innerText");
    }
}
