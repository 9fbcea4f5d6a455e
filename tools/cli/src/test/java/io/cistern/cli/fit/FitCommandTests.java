package io.cistern.cli.fit;

import static io.cistern.cli.fit.TorchProgram.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import com.fasterxml.jackson.jr.ob.JSON;
import io.cistern.DeviceMemory;
import io.cistern.cli.ProgramRun;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemorySnapshot;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import net.razorvine.pickle.Pickler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FitCommandTests {
    @TempDir
    private Path folder;

    @Test
    void aRequestThatFragmentationRefusedFits() throws Exception {
        Path file = TorchProgram.fragmented(0).write(folder.resolve("oom.pickle"));

        ProgramRun run = fit(file, "--allocator=caching");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.wholeLines())
                .contains(
                        file + ": recorded by PyTorch, 360 allocations and frees in 560 ms",
                        "refused               100 MiB after 560 ms at train.py:90 (step)",
                        "peak requested        800 MiB after 239 ms at train.py:70 (step)",
                        "PyTorch reserved      800 MiB at most, 0 B (0.0 %) more than live blocks took at their peak",
                        "available             850 MiB: 800 MiB that PyTorch held at the refusal, and the 50.0 MiB that were free",
                        "held at the peak      640 MiB, 80 % of 800 MiB: train.py:70 (step), 160 blocks",
                        " 160 MiB, 20 %: train.py:88 (step), 40 blocks");
        assertThat(run.wholeLines())
                .containsPattern("\nIt fits on 850 MiB with Cistern's caching, which needs 8\\d\\d MiB\\.\nWhy: ")
                .endsWith("""
                        Why: 160 MiB were live at the refusal, all of them from train.py:88 (step). Fragmentation:\
                         PyTorch held another 640 MiB, and 50.0 MiB of the device were free, but no piece was large\
                         enough for 100 MiB; Cistern's caching joins pieces.
                        Smallest GPU, with 0.5 GiB for the CUDA context: 1.29 GiB with caching.
                        """);
    }

    /// The model finds room in the gaps of the segments.
    @Test
    void aRecordingWhoseOwnModelServesTheRefusedIsDoubted() throws Exception {
        String doubt = "pytorch-native serves what PyTorch refused, so the recording is incomplete";
        Path doubtful =
                TorchProgram.fragmented(0).refused(7 * MIB, 5 * MIB, 91).write(folder.resolve("doubtful.pickle"));

        assertThat(fit(doubtful).out()).containsIgnoringWhitespaces(doubt + ": do not rely");
        assertThat(fit(doubtful, "--capacity=900MiB").out()).doesNotContain(doubt);
        Path withoutRoom = Files.writeString(
                folder.resolve("without-room.csv"),
                "op,id,bytes,stream,device,thread,nanos\na,1,1048576,0,0,0,1\no,0,1048576,0,0,0,2\nf,1,1048576,0,0,0,3\n");
        assertThat(fit(withoutRoom).out()).contains("pytorch-native").doesNotContain(doubt);
        assertThat(fit(TorchProgram.fragmented(0).write(folder.resolve("oom.pickle")))
                        .out())
                .doesNotContain(doubt);
    }

    @Test
    void settingsThatTheModelsDoNotFollowAreNamed() throws Exception {
        TorchProgram program = TorchProgram.fragmented(0)
                .refused(7 * MIB, 5 * MIB, 91)
                .settings(Map.of(
                        "PYTORCH_CUDA_ALLOC_CONF",
                        "max_split_size_mb:128, roundup_power2_divisions:[256:1,>:4],expandable_segments:False,pinned_x:8",
                        "max_split_size",
                        128 * MIB,
                        "garbage_collection_threshold",
                        0.8,
                        "release_lock_on_cudamalloc",
                        true,
                        "roundup_power2_divisions",
                        Map.of("256", 1, "512", 0)));
        Path file = program.write(folder.resolve("set.pickle"));
        String named = "the program ran with max_split_size_mb:128, roundup_power2_divisions:[256:1,>:4] and"
                + " garbage_collection_threshold:0.8, which the models do not follow";
        Path trace = folder.resolve("set.csv");
        ProgramRun.inProcess("import", file.toString(), "-o", trace.toString());

        for (Path each : List.of(file, trace)) {
            assertThat(fit(each).out())
                    .containsIgnoringWhitespaces(
                            named,
                            "pytorch-native serves what PyTorch refused, so the recording is incomplete, or the program"
                                    + " used settings that the model does not have: do not rely");
        }
        assertThat(fit(file, "--allocator=direct").wholeLines()).doesNotContain(named);
        assertThat(fit(file, "--allocator=direct", "--format=json").out())
                .contains("\"settingsNotFollowed\":[\"max_split_size_mb:128\",\"roundup_power2_divisions:[256:1,>:4]\","
                        + "\"garbage_collection_threshold:0.8\"]");
        assertThat(fit(program.settings(Map.of()).write(folder.resolve("unknown.pickle")))
                        .wholeLines())
                .doesNotContain("which the models do not follow")
                .containsIgnoringWhitespaces(
                        "the recording is incomplete, or the program used settings that the model does not have");
    }

    /// As PyTorch records them if nobody sets any, and after the program has set one back.
    @ParameterizedTest
    @ValueSource(strings = {"", "expandable_segments:True", "backend:native", "garbage_collection_threshold:0.9"})
    void defaultSettingsAreNotNamed(String given) throws Exception {
        Path file = TorchProgram.fragmented(0)
                .settings(Map.of(
                        "PYTORCH_CUDA_ALLOC_CONF",
                        given,
                        "max_split_size",
                        -1,
                        "garbage_collection_threshold",
                        0.0,
                        "graph_capture_record_stream_reuse",
                        false,
                        "roundup_power2_divisions",
                        Map.of("1", 0, "2", 0)))
                .write(folder.resolve("usual.pickle"));

        assertThat(fit(file, "--allocator=direct", "--format=json").out()).contains("\"settingsNotFollowed\":[]");
    }

    @Test
    void itDoesNotFitOnADeviceThatIsTooSmall() throws Exception {
        Path file = TorchProgram.fragmented(0).write(folder.resolve("oom.pickle"));

        Path page = folder.resolve("oom.html");

        ProgramRun run = fit(file, "--allocator=caching", "--capacity=600MiB", "--html=" + page);

        assertThat(run.exitCode()).isEqualTo(3);
        assertThat(page)
                .content()
                .containsPattern(
                        "A replay with caching on 8\\d\\d MiB, which it needs, since it does not fit on 600 MiB,"
                                + " until the request that was refused\"");
        assertThat(run.out())
                .contains("refuses 4.00 MiB after")
                .contains("It does not fit on 600 MiB with Cistern's caching, which needs 8");
    }

    /// PyTorch's own snapshots of a training that calls `empty_cache` after each of its runs; all frames but that
    /// function's were taken out.
    @ParameterizedTest
    @CsvSource({
        "torch-trainer, pytorch-native, 184549376",
        "torch-trainer-expandable, pytorch-expandable, 176160768",
    })
    void modelsReserveWhatPyTorchDidWithEmptyCache(String name, String model, int reservedBytes) throws Exception {
        Path file = folder.resolve(name + ".pickle.gz");
        try (InputStream in = Objects.requireNonNull(getClass().getResourceAsStream(name + ".pickle.gz"))) {
            Files.copy(in, file);
        }

        ProgramRun run = fit(file, "--allocator=" + model, "--format=json");

        assertThat(answer(run)).containsEntry("reservedPeakBytes", reservedBytes);
        assertThat(run.out()).contains("\"recordedReservedPeakBytes\":" + reservedBytes + ",");
    }

    /// The same device holds it as long as the refused request is left out, so it is the request that counts.
    @Test
    void theRefusedRequestIsMadeAgainAtItsPlace() throws Exception {
        TorchProgram program = new TorchProgram(0).segment(0x7f00_0000_0000L, 64 * MIB);
        program.allocate(0x7f00_0000_0000L, 64 * MIB, 10)
                .refused(64 * MIB, 8 * MIB, 11)
                .free(0x7f00_0000_0000L);
        Path file = program.write(folder.resolve("oom.pickle"));

        Map<String, Object> tight = answer(fit(file, "--allocator=caching", "--capacity=120MiB", "--format=json"));
        Map<String, Object> roomy = answer(fit(file, "--allocator=caching", "--capacity=128MiB", "--format=json"));

        assertThat(tight).containsEntry("fits", false).containsEntry("refusedFit", List.of(false));
        assertThat(roomy)
                .containsEntry("fits", true)
                .containsEntry("refusedFit", List.of(true))
                .containsEntry("smallestCapacityBytes", 128 * (int) MIB);
    }

    @Test
    void noSettingHelpsWhereLiveMemoryAndTheRequestExceedTheDevice() throws Exception {
        Path file = new TorchProgram(0)
                .segment(0x7f00_0000_0000L, 64 * MIB)
                .allocate(0x7f00_0000_0000L, 64 * MIB, 10)
                .refused(64 * MIB, 8 * MIB, 11)
                .write(folder.resolve("full.pickle"));

        assertThat(fit(file).wholeLines())
                .contains(
                        "Why: 64.0 MiB were live at the refusal, all of them from train.py:10 (step). With the 64.0 MiB"
                                + " requested, that is more than the 72.0 MiB available: no setting can help.\n");
    }

    @Test
    void reservedBytesAreUnknownOfAFileWithoutItsSegments() throws Exception {
        TorchProgram program = new TorchProgram(0).allocate(0x7f00_0000_0000L, 64 * MIB, 10);

        ProgramRun run = fit(program.write(folder.resolve("cut.pickle")), "--allocator=caching");

        assertThat(run.out())
                .contains(
                        "peak requested        64.0 MiB",
                        "PyTorch reserved      unknown: the file's segments hold less than its blocks\n");
    }

    @Test
    void theSmallestDeviceIsFoundForEachAllocator() throws Exception {
        StringBuilder rows = new StringBuilder("op,id,bytes,stream,device,thread,nanos\n");
        for (int id = 0; id < 100; id++) {
            rows.append("a," + id + ",2200000,0,0,0," + id + "\n"); // The driver hands out 2 MiB at a time.
        }
        Path file = Files.writeString(folder.resolve("own.csv"), rows);

        ProgramRun run = fit(file, "--allocator=direct", "--allocator=caching", "--format=json");

        assertThat(run.exitCode()).isZero();
        assertThat(answers(run))
                .extracting(answer -> answer.get("allocator"), answer -> answer.get("smallestCapacityBytes"))
                .containsExactly(tuple("direct", 400 * (int) MIB), tuple("caching", 216 * (int) MIB));
    }

    /// Of a device on which it fits already, too, and of one that is less than it needs in all.
    @Test
    void whatIsNeededDoesNotDependOnTheCapacity() throws Exception {
        TorchProgram program = new TorchProgram(0).segment(0x7f00_0000_0000L, 20 * MIB);
        Path file = program.allocate(0x7f00_0000_0000L, 8 * MIB, 10).write(folder.resolve("small.pickle"));

        for (String options : List.of("", " --capacity=28MiB", " --capacity=19MiB", " --capacity=10MiB")) {
            ProgramRun run = fit(file, ("--allocator=pytorch-native --format=json" + options).split(" "));

            assertThat(answer(run)).as(options).containsEntry("smallestCapacityBytes", 20 * (int) MIB);
        }
        assertThat(fit(file, "--allocator=pytorch-native").out()).contains(" (to 2 MiB)\n");
    }

    @Test
    void aLimitThatRefusedIsNotTakenForTheDevice() throws Exception {
        Path file = new TorchProgram(0)
                .segment(0x7f00_0000_0000L, 64 * MIB)
                .allocate(0x7f00_0000_0000L, 64 * MIB, 10)
                .refused(64 * MIB, 1024 * MIB, 11)
                .write(folder.resolve("limited.pickle"));

        ProgramRun run = fit(file, "--allocator=caching");

        assertThat(run.exitCode()).isEqualTo(3);
        assertThat(run.wholeLines())
                .contains("available             64.0 MiB: the maximum that PyTorch held: 1.00 GiB of the device were"
                        + " free, so a"
                        + " limit refused the request; --capacity sets another amount")
                .contains(
                        "train.py:10 (step). A limit refused the 64.0 MiB, since 1.00 GiB of the device were free.\n");
    }

    /// After the refusal, PyTorch reserved more. Times may be missing, be equal, or go back.
    @ParameterizedTest
    @ValueSource(strings = {"0 0 0 0", "7 7 7 7", "5 6 7 8", "5 6 3 9"})
    void theRoomIsThatAtTheRefusalWhateverTheClockSays(String times) throws Exception {
        long base = 0x7f00_0000_0000L;
        List<Map<String, Object>> trace = List.of(
                event("segment_alloc", "addr", base, 20 * MIB),
                event("alloc", "addr", base, 8 * MIB),
                event("oom", "device_free", 5 * MIB, 64 * MIB),
                event("segment_alloc", "addr", base + 20 * MIB, 20 * MIB));
        String[] micros = times.split(" ");
        for (int i = 0; i < micros.length; i++) {
            trace.get(i).put("time_us", Long.valueOf(micros[i]));
        }
        Map<String, Object> segment =
                Map.of("device", 0, "address", base, "total_size", 20 * MIB, "stream", 0, "blocks", List.of());
        Map<String, Object> other = new HashMap<>(segment);
        other.put("address", base + 20 * MIB);

        ProgramRun run = fit(snapshot("clock.pickle", List.of(segment, other), trace), "--allocator=direct");

        assertThat(run.out()).contains("available             25.0 MiB: 20.0 MiB that PyTorch held at the refusal");
    }

    private static Map<String, Object> event(String action, String number, long value, long byteSize) {
        return new HashMap<>(Map.of("action", action, number, value, "size", byteSize, "stream", 0));
    }

    private Path snapshot(String name, List<?> segments, List<?> trace) throws Exception {
        return Files.write(
                folder.resolve(name),
                new Pickler().dumps(Map.of("segments", segments, "device_traces", List.of(trace))));
    }

    @Test
    void eachDeviceHasItsAnswer() throws Exception {
        TorchProgram small = new TorchProgram(1).segment(0x7e00_0000_0000L, 20 * MIB);
        small.allocate(0x7e00_0000_0000L, 8 * MIB, 5);
        Path file = TorchProgram.write(folder.resolve("two.pickle"), TorchProgram.fragmented(0), small);

        ProgramRun run = fit(file, "--allocator=caching");

        assertThat(run.out())
                .contains(file + ", device 0: ", file + ", device 1: ")
                .contains("peak requested        800 MiB", "peak requested        8.00 MiB")
                .contains("PyTorch reserved      20.0 MiB at most");
    }

    /// The page begins with the device that decides, the text keeps the order of the devices.
    @Test
    void eachVerdictNamesItsDevice() throws Exception {
        TorchProgram small = new TorchProgram(0).segment(0x7e00_0000_0000L, 20 * MIB);
        small.allocate(0x7e00_0000_0000L, 8 * MIB, 5);
        Path file = TorchProgram.write(folder.resolve("two.pickle"), small, TorchProgram.fragmented(1));
        Path page = folder.resolve("two.html");

        ProgramRun run = fit(file, "--allocator=caching", "--capacity=600MiB", "--html=" + page);

        assertThat(run.exitCode()).isEqualTo(3);
        assertThat(run.wholeLines())
                .containsPattern(
                        "\nDevice 0: it fits on 600 MiB with Cistern's caching, .*\\.\n(Device 0: .*\n)*\n.*two.pickle, device 1: ")
                .contains("\nDevice 1: it does not fit on 600 MiB with Cistern's caching, ");
        assertThat(page)
                .content()
                .containsPattern(
                        "\"verdicts\":\\[\"Device 1: it does not fit on 600 MiB .*\"verdicts\":\\[\"Device 0: it fits on ");
    }

    @Test
    void eachDeviceCountsItsOwnOlderBlocks() throws Exception {
        long base = 0x7f00_0000_0000L;
        List<Object> frees = List.of(free(base), free(base + 4 * MIB));
        Path file = Files.write(
                folder.resolve("two.pickle"),
                new Pickler()
                        .dumps(Map.of(
                                "segments",
                                List.of(),
                                "device_traces",
                                List.of(List.of(free(base)), List.of(), frees))));
        Path trace = folder.resolve("two.csv");
        ProgramRun.inProcess("import", file.toString(), "-o", trace.toString());

        for (Path each : List.of(file, trace)) {
            List<Object> devices = JSON.std.listFrom(
                    fit(each, "--allocator=direct", "--format=json").out());

            assertThat(devices)
                    .extracting(device -> (Object) ((Map<?, ?>) device).get("olderBlocks"))
                    .containsExactly(1, 2);
        }
    }

    private static Map<String, Object> free(long address) {
        return Map.of("action", "free_completed", "addr", address, "size", 4 * MIB, "stream", 0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"\u001b[2J", "\n", "\r", "\u007f", "\u009b2J"})
    void controlCharactersOfASnapshotAreNotPrinted(String control) throws Exception {
        Map<String, Object> event = Map.of(
                "action",
                "alloc",
                "addr",
                4096,
                "size",
                MIB,
                "stream",
                0,
                "user_metadata",
                "step" + control,
                "category",
                "activation" + control,
                "frames",
                List.of(Map.of("name", "step" + control, "filename", "train" + control + ".py", "line", 7)));
        Path file = Files.write(
                folder.resolve("x.pickle"),
                new Pickler().dumps(Map.of("segments", List.of(), "device_traces", List.of(List.of(event)))));
        Path trace = folder.resolve("x.csv");

        ProgramRun run = fit(file, "--allocator=direct");
        ProgramRun.inProcess("import", file.toString(), "-o", trace.toString());
        Path details = folder.resolve("x.details.json");
        String json = Files.readString(details);
        Files.writeString(details, json.replace("step?", "step\\u001b"));

        assertThat(json).contains("step?", "train?", "activation?");
        assertThat(run.out()).contains("train?");
        assertThat(run.out().lines()).noneMatch(line -> line.chars().anyMatch(Character::isISOControl));
        assertThat(fit(trace, "--allocator=direct").out()).contains("step?").doesNotContain("\u001b");
    }

    @Test
    void devicesComeByTheirOrdinals() throws Exception {
        long base = 0x7f00_0000_0000L;
        TorchProgram late = new TorchProgram(0).segment(base, 20 * MIB).segment(base + 20 * MIB, 20 * MIB);
        TorchProgram early = new TorchProgram(1).segment(base, 20 * MIB);
        late.allocate(base, MIB, 10);
        early.allocate(base, MIB, 10);

        ProgramRun run = fit(TorchProgram.write(folder.resolve("two.pickle"), late, early), "--allocator=direct");

        assertThat(run.out()).containsSubsequence(", device 0: ", ", device 1: ");
    }

    @Test
    void ofTwoFilesItTellsWhatGrewByCallStack() throws Exception {
        long base = 0x7f00_0000_0000L;
        TorchProgram program = new TorchProgram(0).segment(base, 64 * MIB).allocate(base, 8 * MIB, 10);
        Path first = program.allocate(base + 8 * MIB, 4 * MIB, 20).write(folder.resolve("first.pickle"));
        program.allocate(base + 12 * MIB, 2 * MIB, 30).allocate(base + 14 * MIB, 2 * MIB, 30);
        Path second = program.free(base + 8 * MIB).write(folder.resolve("second.pickle"));

        Path page = folder.resolve("grown.html");

        ProgramRun run = fit(first, second.toString(), "--allocator=caching", "--html=" + page);

        assertThat(page).content().containsPattern("innermost\\slines\\sfirst:\\s\\+0 B\n   \\+4.00 MiB");
        assertThat(run.wholeLines().lines().toList())
                .startsWith(
                        "From " + first + " to " + second
                                + ", at the refused request or else at the end, innermost lines first: +0 B",
                        "   +4.00 MiB      +2 blocks  train.py:30 (step) < train.py:99 (<module>)",
                        "   -4.00 MiB      -1 block   train.py:20 (step) < train.py:99 (<module>)",
                        "",
                        first + ": recorded by PyTorch, 2 allocations and frees in 2 ms");
    }

    /// Ten lines are shown.
    @Test
    void theGreatestChangesAreShownWhetherTheyGrewOrShrank() throws Exception {
        long base = 0x7f00_0000_0000L;
        TorchProgram program = new TorchProgram(0).segment(base, 64 * MIB).allocate(base, 32 * MIB, 7);
        Path first = program.write(folder.resolve("first.pickle"));
        program.free(base);
        for (int block = 0; block < 10; block++) {
            program.allocate(base + block * MIB, MIB, 20 + block);
        }
        Path second = program.write(folder.resolve("second.pickle"));

        assertThat(fit(first, second.toString(), "--allocator=direct").out())
                .containsPattern("first: -22.0 MiB\n +-32.0 MiB +-1 block +train.py:7 ")
                .contains("  and 1 more call stack\n");
    }

    /// The snapshot that comes with the repository, as the documentation shows it.
    @Test
    void whatPyTorchItselfCanDoComesFirst() throws Exception {
        Path root = Path.of("../..");
        Path file = root.resolve("examples/snapshots/oom.pickle.gz");
        String remedy = "With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True the program would probably have fitted"
                + " (needs 3.10 GiB of 3.21 GiB). It would also fit with Cistern's caching (3.02 GiB) and direct"
                + " (3.00 GiB), but not with async (3.54 GiB).\n"
                + "Why: 2.78 GiB were live at the refusal, 1.66 GiB of them from train.py:43 (forward). Fragmentation:"
                + " PyTorch held another 393 MiB, and 51.6 MiB of the device were free, but no piece was large enough for"
                + " 196 MiB; expandable_segments:True joins pieces.\n"
                + "Smallest GPU, with 0.5 GiB for the CUDA context: 3.60 GiB with expandable_segments:True; 3.52"
                + " GiB with caching; 3.86 GiB with pytorch-native, which the program used.";

        ProgramRun run = fit(file);
        String out = run.out();

        assertThat(run.wholeLines()).endsWith("\n" + remedy + "\n");
        assertThat(root.resolve("docs/ask-your-snapshot.md"))
                .content()
                .contains(out.substring(out.indexOf("  refused ")));
        assertThat(fit(file, "--capacity=2.5GiB").wholeLines())
                .doesNotContain("would probably")
                .contains(
                        "with Cistern's caching, which needs 3.02 GiB. No allocator can serve it: the program requests"
                                + " 2.97 GiB at once.\nWhy: 2.78 GiB were live at the refusal");
        assertThat(fit(file, "--capacity=9GiB").wholeLines())
                .doesNotContain("would probably")
                .contains(
                        "It fits on 9.00 GiB with Cistern's caching, which needs 3.02 GiB; also with async (3.54 GiB),"
                                + " direct (3.00 GiB), pytorch-native (3.36 GiB) and pytorch-expandable (3.10 GiB).\n");
    }

    @Test
    void packedFilesAndSizesWithoutUnitsAreExplained() throws Exception {
        Path packed = Files.write(folder.resolve("oom.xz"), new byte[] {(byte) 0xFD, '7', 'z', 'X', 'Z', 0});
        Path file = TorchProgram.fragmented(0).write(folder.resolve("oom.pickle"));

        assertThat(fit(packed).err()).contains("is xz-compressed, not a", "; unpack it");
        assertThat(fit(file, "--capacity=3.4").err()).contains("'3.4' has no unit; write 3.4GiB");
        assertThat(fit(Path.of("-")).err()).contains("-: no such file; name standard input /dev/stdin");
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1GiB or 1MiB",
        "1023, 1023GiB or 1023MiB",
        "0, it like",
        "-1, it like",
        "-3GiB, it like",
        "100k, it like"
    })
    void aCapacityBelowOneMebibyteIsExplained(String capacity, String advice) throws Exception {
        Path file = TorchProgram.fragmented(0).write(folder.resolve("oom.pickle"));

        assertThat(fit(file, "--capacity=" + capacity).err())
                .contains("'" + capacity + "' is less than 1MiB; write " + advice);
        assertThat(fit(file, "--capacity", capacity).err()).contains("'" + capacity + "' is less than 1MiB");
    }

    @ParameterizedTest
    @ValueSource(strings = {"fit", "report", "import"})
    void aSnapshotOfPyTorchAsJsonIsRefusedWithTheWayOut(String reader) throws Exception {
        Path file = Files.writeString(folder.resolve("torch.json"), "{\n  \"segments\": [], \"device_traces\": [[]]}");

        assertThat(ProgramRun.inProcess(reader, file.toString()).err().lines())
                .singleElement()
                .asString()
                .contains(
                        "is a PyTorch snapshot as JSON, not ",
                        "; name the pickle that torch.cuda.memory._dump_snapshot writes");
    }

    @Test
    void anImpossibleEventIsNamedWithItsDevice() throws Exception {
        List<Object> traces = List.of(List.of(), List.of(event("alloc", "addr", 4096, -1)));
        Path file = Files.write(
                folder.resolve("bad.pickle"),
                new Pickler().dumps(Map.of("segments", List.of(), "device_traces", traces)));

        assertThat(fit(file).err()).contains("'device_traces[1][0]' has an impossible 'size': -1");
    }

    @Test
    void theGpuForTheProgramsOwnAllocatorIsNamed() throws Exception {
        Path file = TorchProgram.fragmented(0).write(folder.resolve("oom.pickle"));

        assertThat(fit(file).wholeLines())
                .contains("Smallest GPU, with 0.5 GiB for the CUDA context: 1.29 GiB with caching; 1.40 GiB with"
                        + " pytorch-native, which the program used.\n");
        assertThat(fit(file, "--allocator=pytorch-native").out()).doesNotContain("which the program used");
    }

    @Test
    void anUnknownEventDoesNotSetTheClock() throws Exception {
        List<Map<String, Object>> trace = List.of(
                event("future_action", "addr", 0, 0),
                event("alloc", "addr", 4096, MIB),
                event("free_requested", "addr", 4096, MIB),
                event("free_completed", "addr", 4096, MIB));
        for (int i = 0; i < 4; i++) {
            trace.get(i).put("time_us", i == 0 ? 1L : 1_700_000_000_000_000L + 1000L * i);
        }

        assertThat(fit(snapshot("future.pickle", List.of(), trace), "--allocator=direct")
                        .wholeLines())
                .contains("allocations and frees in 2 ms");
    }

    /// Of a stack without own code, the innermost line of Python tells more than the native function.
    @Test
    void aStackOfLibrariesAloneIsNamedByItsPython() throws Exception {
        Map<String, Object> made = event("alloc", "addr", 4096, MIB);
        made.put(
                "frames",
                List.of(
                        Map.of("name", "_VF::lstm", "filename", "??", "line", 0),
                        Map.of("name", "forward", "filename", "/lib/python3/torch/nn/rnn.py", "line", 917)));
        Map<String, Object> bare = event("alloc", "addr", 8 * MIB, 2 * MIB);
        bare.put("frames", List.of(Map.of("name", "_VF::gru", "filename", "??", "line", 0)));

        assertThat(fit(snapshot("library.pickle", List.of(), List.of(made, bare)), "--allocator=direct")
                        .out())
                .contains(": rnn.py:917 (forward), 1 block", ": _VF::gru, 1 block");
    }

    @Test
    void growthOfSeveralDevicesNamesThem() throws Exception {
        long base = 0x7f00_0000_0000L;
        TorchProgram zero = new TorchProgram(0).segment(base, 64 * MIB).allocate(base, 8 * MIB, 10);
        TorchProgram one = new TorchProgram(1).segment(base, 64 * MIB).allocate(base, 8 * MIB, 10);
        Path first = TorchProgram.write(folder.resolve("first.pickle"), zero, one);
        zero.allocate(base + 8 * MIB, 2 * MIB, 30);
        one.allocate(base + 8 * MIB, 4 * MIB, 30);
        Path second = TorchProgram.write(folder.resolve("second.pickle"), zero, one);

        ProgramRun run = fit(first, second.toString(), "--allocator=caching");

        assertThat(run.wholeLines())
                .contains("at the refused request or else at the end, innermost lines first: +6.00 MiB\n")
                .contains("""
                           +4.00 MiB      +1 block   device 1: train.py:30 (step) < train.py:99 (<module>)
                           +2.00 MiB      +1 block   device 0: train.py:30 (step) < train.py:99 (<module>)
                        """);
        assertThat(fit(first, second.toString(), "--allocator=caching", "--format=json")
                        .out())
                .contains("{\"device\":1,\"frames\":[\"step(/home/me/train.py:30)\"");
    }

    @Test
    void growthIsOneObjectAfterThoseOfTheFiles() throws Exception {
        Path file = TorchProgram.fragmented(0).write(folder.resolve("one.pickle"));

        ProgramRun run = fit(file, file.toString(), "--allocator=caching", "--format=json");

        assertThat(JSON.std.listFrom(run.out()))
                .extracting(each -> ((Map<?, ?>) each).keySet().iterator().next())
                .isEqualTo(List.of("file", "file", "from"));
    }

    @Test
    void aFileThatCannotBeReadDoesNotHideTheOthers() throws Exception {
        Path good = TorchProgram.fragmented(0).write(folder.resolve("good.pickle"));
        Path cut = Files.write(folder.resolve("cut.pickle"), Arrays.copyOf(Files.readAllBytes(good), 1000));
        Path empty = Files.createFile(folder.resolve("empty.pickle"));

        for (List<String> others : List.of(List.of(good.toString()), List.of(empty.toString(), good.toString()))) {
            String[] options = Stream.concat(others.stream(), Stream.of("--allocator=caching", "--capacity=600MiB"))
                    .toArray(String[]::new);
            ProgramRun run = fit(cut, options);

            assertThat(run.exitCode()).isEqualTo(2);
            assertThat(run.err()).contains(cut + ": the file is cut off at byte 1000");
            assertThat(run.err().contains(empty + ": the file is empty")).isEqualTo(others.size() == 2);
            assertThat(run.out()).startsWith(good + ": recorded by PyTorch").contains("It does not fit on 600 MiB");
        }
    }

    @Test
    void aRowThatAKillCutOffIsToldToBeLeftOut() throws Exception {
        Path file = Files.writeString(folder.resolve("rmm.csv"), """
                Thread,Time,Action,Pointer,Size,Stream
                1,10:00:00.000000,allocate,7f141ba00000,1048576,0
                1,10:00:00.000012,allo""");

        ProgramRun run = fit(file, "--allocator=direct");

        assertThat(run.exitCode()).isZero();
        assertThat(run.err()).contains(file + ":3: is not a row of an RMM log", "so this row is left out");
    }

    @Test
    void aProgramWhoseFirstRequestWasRefusedHadNothing() throws Exception {
        Path file = new TorchProgram(0).refused(200 * MIB, 100 * MIB, 10).write(folder.resolve("first.pickle"));

        assertThat(fit(file, "--allocator=direct").out())
                .contains("peak requested        200 MiB", "PyTorch reserved      0 B at most, 0 B (0.0 %) more");
        assertThat(fit(file, "--allocator=direct", "--format=json").out())
                .contains("\"requestedPeakBytes\":209715200,\"servedPeakBytes\":0,\"recordedReservedPeakBytes\":0,");
    }

    @Test
    void whatNoDeviceServesIsSaidOfEachAllocator() throws Exception {
        Path file = Files.writeString(folder.resolve("huge.csv"), """
                Thread,Time,Action,Pointer,Size,Stream
                1,10:00:00.000000,allocate,7f141ba00000,70368744177664,0
                1,10:00:00.000012,free,7f141ba00000,70368744177664,0
                """);
        Path page = folder.resolve("huge.html");

        ProgramRun run = fit(file, "--html=" + page);

        assertThat(run.wholeLines())
                .contains("caching refuses it even on 8.00 TiB; async, direct, pytorch-native and pytorch-expandable"
                        + " refuse it, too. Pass --capacity");
        assertThat(run.err())
                .contains(
                        "cistern: the page does not show huge.csv with caching: it refuses a request on any device",
                        "cistern: " + page + " is not written: there is nothing to show");
        assertThat(page).doesNotExist();
    }

    @Test
    void aReplayThatIsTooLongForThePageIsNamed() throws Exception {
        StringBuilder rows = new StringBuilder("op,id,bytes,stream\n");
        for (int id = 0; id < 150_001; id++) {
            rows.append("a,").append(id).append(",512,0\nf,").append(id).append(",0,0\n");
        }
        Path file = Files.writeString(folder.resolve("long.csv"), rows);
        Path page = folder.resolve("long.html");

        ProgramRun run = fit(file, "--allocator=direct", "--html=" + page);

        assertThat(run.err())
                .contains("cistern: the page does not show long.csv with direct: that is more than 300,000 allocations"
                        + " and frees");
        assertThat(page).doesNotExist();
    }

    @Test
    void aPickleThatCisternWroteSaysSo() throws Exception {
        Path file = folder.resolve("own.pickle");
        Path page = folder.resolve("own.html");
        try (SimulatedGpu gpu = SimulatedGpu.builder()
                        .devices(1)
                        .capacityBytes(64 * MIB)
                        .build();
                DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Catalog.discover(List.of(), List.of()))
                        .open()) {
            MemoryHistory.of(memory).start(HistoryOptions.withStacks());
            memory.free(memory.allocate(3 * MIB, 0, 0), 0);
            MemorySnapshot.take(memory).write(file);
        }

        ProgramRun run = fit(file, "--allocator=caching", "--html=" + page);

        assertThat(run.wholeLines())
                .startsWith(file + ": recorded by Cistern, 2 allocations and frees")
                .contains("Cistern reserved ")
                .doesNotContain("PyTorch");
        assertThat(page).content().contains("A snapshot that Cistern took");
    }

    @Test
    void growthNeedsExactlyTwoFiles() throws Exception {
        String file =
                TorchProgram.fragmented(0).write(folder.resolve("one.pickle")).toString();

        ProgramRun run = fit(Path.of(file), file, file, "--allocator=caching");

        assertThat(run.err()).contains("cistern: to see what grew, name exactly two files");
        assertThat(run.out()).doesNotContain("From ");
    }

    @Test
    void theReportOfTwoSnapshotsIsThePageOfFit() throws Exception {
        long base = 0x7f00_0000_0000L;
        TorchProgram program = new TorchProgram(0).segment(base, 64 * MIB).allocate(base, 8 * MIB, 10);
        Path first = program.write(folder.resolve("first.pickle"));
        Path second = program.allocate(base + 8 * MIB, 4 * MIB, 20).write(folder.resolve("second.pickle"));
        Path ofFit = folder.resolve("fit.html");
        Path ofReport = folder.resolve("report.html");

        fit(first, second.toString(), "--html=" + ofFit);
        ProgramRun.inProcess("report", first.toString(), second.toString(), "-o", ofReport.toString());

        assertThat(ofReport).content().contains("+4.00 MiB      +1 block");
        assertThat(ofReport).hasSameTextualContentAs(ofFit);
    }

    @Test
    void onlyModelsInTheTableAreExplained() throws Exception {
        Path file = TorchProgram.fragmented(0).write(folder.resolve("oom.pickle"));

        assertThat(fit(file, "--allocator=caching").out()).doesNotContain("model");
        assertThat(fit(file, "--allocator=pytorch-native").out())
                .containsPattern(
                        "pytorch-native is a model of PyTorch's allocator, without\\s+expandable_segments:True\n");
        assertThat(fit(file, "--allocator=pytorch-expandable").out())
                .containsPattern(
                        "pytorch-expandable is a model of PyTorch's allocator, with\\s+expandable_segments:True\n");
    }

    /// Blocks of the same line from before the recording are many times as many.
    @Test
    void aLeakIsFoundThoughTheRecordingLostItsBeginning() throws Exception {
        TorchProgram program = new TorchProgram(0);
        long base = 0x7f00_0000_0000L;
        for (int block = 0; block < 478; block++) {
            if (block == 400) {
                program.forget();
            }
            long address = base + block * 32 * MIB;
            program.segment(address, 20 * MIB).allocate(address, 2 * MIB, 41);
            program.allocate(address + 4 * MIB, MIB, 60).free(address + 4 * MIB);
        }
        Path file = program.write(folder.resolve("ring.pickle"));

        ProgramRun run = fit(file, "--allocator=direct");

        assertThat(run.wholeLines())
                .contains("older blocks          400 from before the recording")
                .contains(
                        "looks like a leak     train.py:41 (step): 956 MiB that grew in 10 of 10 parts of the recording;"
                                + " 0 of 478 blocks freed");
    }

    @Test
    void noLeakIsSaidWhereOneWasLookedFor() throws Exception {
        Path known = TorchProgram.fragmented(0).write(folder.resolve("oom.pickle"));
        StringBuilder rows = new StringBuilder("op,id,bytes,stream,device,thread,nanos\n");
        for (int id = 0; id < 100; id++) {
            rows.append("a," + id + ",2200000,0,0,0," + id + "\n");
        }
        Path withoutStacks = Files.writeString(folder.resolve("own.csv"), rows);

        assertThat(fit(known, "--allocator=direct").out()).contains("looks like a leak     nothing in these 560 ms\n");
        assertThat(fit(withoutStacks, "--allocator=direct").out())
                .contains("looks like a leak     unknown: no call stacks\n");
        assertThat(fit(known, "--allocator=direct", "--format=json").out()).contains("\"leaks\":[]");
        assertThat(fit(withoutStacks, "--allocator=direct", "--format=json").out())
                .contains("\"leaks\":null");
    }

    @Test
    void stacksOfOtherEventsDoNotTellWhetherBlocksLeak() throws Exception {
        TorchProgram program = new TorchProgram(0);
        for (int block = 0; block < 80; block++) {
            long address = 0x7f00_0000_0000L + block * 32 * MIB;
            program.segment(address, 20 * MIB).allocate(address, 18 * MIB, 0);
            program.allocate(address + 18 * MIB, MIB, 0).free(address + 18 * MIB);
        }
        Path file = program.refused(100 * MIB, MIB, 41).write(folder.resolve("one-stack.pickle"));

        assertThat(fit(file, "--allocator=direct").out()).contains("looks like a leak     unknown: no call stacks\n");
    }

    @Test
    void loadingAModelIsNoLeak() throws Exception {
        TorchProgram program = new TorchProgram(0);
        for (int layer = 0; layer < 60; layer++) {
            long address = 0x7f00_0000_0000L + layer * 32 * MIB;
            program.segment(address, 20 * MIB).allocate(address, 20 * MIB, 12);
        }
        Path file = program.write(folder.resolve("load.pickle"));

        assertThat(fit(file, "--allocator=direct").out())
                .contains("looks like a leak     unknown: no block was freed, as while a model loads\n");
    }

    /// Alone, and on one device of two.
    @Test
    void whatWaitsForAnotherStreamIsFreedButNotFree() throws Exception {
        TorchProgram one = new TorchProgram(0);
        TorchProgram other = new TorchProgram(1);
        for (int step = 0; step < 40; step++) {
            long address = 0x7f00_0000_0000L + step * 32 * MIB;
            one.segment(address, 30 * MIB).allocate(address, 30 * MIB, 41).requestFree(address);
            other.allocate(address, MIB, 50).free(address);
        }
        one.segment(0x7e00_0000_0000L, 20 * MIB).allocate(0x7e00_0000_0000L, MIB, 60);
        Path alone = one.write(folder.resolve("alone.pickle"));
        Path both = TorchProgram.write(folder.resolve("both.pickle"), one, other);

        for (Path file : List.of(alone, both)) {
            assertThat(fit(file, "--allocator=direct").wholeLines())
                    .contains("1.17 GiB, 100 % of 1.17 GiB: freed, but waiting for another stream (record_stream),"
                            + " 40 blocks")
                    .contains("looks like a leak     nothing in these ")
                    .contains("; 1.17 GiB freed, but waiting for another stream (record_stream). Pass")
                    .doesNotContain("train.py:41 (step) holds");
        }
        assertThat(fit(alone, both.toString(), "--allocator=direct").wholeLines())
                .contains("freed, but waiting for another stream (record_stream)");
    }

    @Test
    void aCutFileSaysWhere() throws Exception {
        byte[] whole = Files.readAllBytes(TorchProgram.fragmented(0).write(folder.resolve("oom.pickle")));
        ByteArrayOutputStream gzipped = new ByteArrayOutputStream();
        try (OutputStream out = new GZIPOutputStream(gzipped)) {
            out.write(whole);
        }
        byte[] packed = gzipped.toByteArray();
        Path cut = Files.write(folder.resolve("cut.pickle"), Arrays.copyOf(whole, 1000));
        Path cutPacked = Files.write(folder.resolve("cut.pickle.gz"), Arrays.copyOf(packed, packed.length / 2));

        assertThat(fit(cut).err()).isEqualToIgnoringNewLines(cut + ": the file is cut off at byte 1000");
        assertThat(fit(cutPacked).err().strip())
                .matches(Pattern.quote(cutPacked + ": the file is cut off at byte ") + "\\d+ of the unpacked data");
    }

    @Test
    void ofASnapshotWithoutHistoryTheReportIsProposed() throws Exception {
        Path file = snapshot("none.pickle", List.of(), List.of());

        assertThat(fit(file).err()).contains("`cistern report " + file + "` shows its memory without it");
        assertThat(ProgramRun.inProcess(
                                "report",
                                file.toString(),
                                "-o",
                                folder.resolve("none.html").toString())
                        .exitCode())
                .isZero();
    }

    @Test
    void whatOnlyGrowsLooksLikeALeak() throws Exception {
        TorchProgram program = new TorchProgram(0);
        for (int step = 0; step < 60; step++) {
            long base = 0x7f00_0000_0000L + step * 32 * MIB;
            program.segment(base, 20 * MIB)
                    .allocate(base, 2 * MIB, 41)
                    .allocate(base + 4 * MIB, 8 * MIB, 60)
                    .free(base + 4 * MIB);
        }
        Path file = program.write(folder.resolve("leak.pickle"));

        ProgramRun run = fit(file, "--allocator=caching");

        assertThat(run.wholeLines())
                .contains(
                        "looks like a leak     train.py:41 (step): 120 MiB that grew in 10 of 10 parts of the recording;"
                                + " 0 of 60 blocks freed")
                .contains(
                        "\nLikely leak: train.py:41 (step) holds 120 MiB at the end, and its live bytes keep growing.\n")
                .doesNotContain("train.py:60 (step):");
    }

    /// The first ten steps take nine tenths of the time, as while kernels are compiled.
    @Test
    void aSlowStartHidesNoLeak() throws Exception {
        TorchProgram program = new TorchProgram(0);
        for (int step = 0; step < 100; step++) {
            long base = 0x7f00_0000_0000L + step * 32 * MIB;
            program.pass(step < 10 ? 90_000 : 1000)
                    .segment(base, 20 * MIB)
                    .allocate(base, 2 * MIB, 41)
                    .allocate(base + 4 * MIB, 8 * MIB, 60)
                    .free(base + 4 * MIB);
        }
        Path file = program.write(folder.resolve("slow.pickle"));

        ProgramRun run = fit(file, "--allocator=direct");

        assertThat(run.wholeLines())
                .contains("looks like a leak     train.py:41 (step): 200 MiB that grew in 10 of 10");
    }

    @Test
    void aLogOfRmmAndABundledTraceFitToo() throws Exception {
        Path log = Files.writeString(folder.resolve("rmm.csv"), """
                Thread,Time,Action,Pointer,Size,Stream
                1,10:00:00.000000,allocate,7f141ba00000,1048576,0
                1,10:00:00.000012,allocate failure,0,9999999999,0
                """);

        ProgramRun run =
                ProgramRun.inProcess("fit", log.toString(), "vit_streams", "--allocator=caching", "--capacity=2GiB");

        assertThat(run.exitCode()).isEqualTo(3);
        assertThat(run.out())
                .contains("recorded by RMM", "It does not fit on 2.00 GiB with Cistern's caching, which needs 9.3")
                .contains("vit_streams: 33,872 allocations and frees", "It fits on 2.00 GiB with Cistern's caching");
    }

    /// Call stacks, times, what was reserved and what was free lie beside the imported trace.
    @Test
    void anImportedTraceFitsAsTheSnapshotDoes() throws Exception {
        Path snapshot = TorchProgram.fragmented(0).write(folder.resolve("oom.pickle"));
        Path trace = folder.resolve("oom.csv.gz");
        ProgramRun.inProcess("import", snapshot.toString(), "-o", trace.toString());

        String first = fit(snapshot, "--allocator=caching").out();
        String second = fit(trace, "--allocator=caching").out();

        assertThat(folder.resolve("oom.details.json.gz")).exists();
        assertThat(second.replace(trace.toString(), "")).isEqualTo(first.replace(snapshot.toString(), ""));
    }

    @Test
    void damagedDetailsAreRefusedInALine() throws Exception {
        Path snapshot = TorchProgram.fragmented(0).write(folder.resolve("oom.pickle"));
        Path trace = folder.resolve("oom.csv");
        ProgramRun.inProcess("import", snapshot.toString(), "-o", trace.toString());
        Path details = folder.resolve("oom.details.json");
        String whole = Files.readString(details);

        for (String damaged : List.of(
                whole.substring(0, whole.length() / 2),
                "[]",
                whole.replace("\"stacks\":[[],", "\"stacks\":[[999],"),
                whole.replace("\"stacks\":[[],", "\"stacks\":["),
                whole.replace("\"reserved\":[", "\"reserved\":[7,"))) {
            Files.writeString(details, damaged);
            ProgramRun run = fit(trace, "--allocator=caching");

            assertThat(run.exitCode()).as(damaged).isEqualTo(2);
            assertThat(run.err().lines()).singleElement().asString().startsWith(details + ": ");
        }
    }

    @Test
    void noFileIsReadThatIsNoRecording() throws Exception {
        Path file = Files.writeString(folder.resolve("notes.txt"), "hello\n");

        ProgramRun run = fit(file);

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err().lines())
                .singleElement()
                .asString()
                .startsWith(file + ": is not a PyTorch snapshot, an RMM log or");
    }

    private static ProgramRun fit(Path file, String... options) {
        return ProgramRun.inProcess(Stream.concat(Stream.of("fit", file.toString()), Stream.of(options))
                .toArray(String[]::new));
    }

    private static Map<String, Object> answer(ProgramRun run) throws Exception {
        return answers(run).getFirst();
    }

    @SuppressWarnings("unchecked") // As the command writes it.
    private static List<Map<String, Object>> answers(ProgramRun run) throws Exception {
        Map<String, Object> first =
                (Map<String, Object>) JSON.std.listFrom(run.out()).getFirst();
        return (List<Map<String, Object>>) first.get("allocators");
    }
}
