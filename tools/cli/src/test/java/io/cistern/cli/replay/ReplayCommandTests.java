package io.cistern.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.ProgramRun;
import io.cistern.cli.common.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What `cistern replay` prints and how it ends, on the simulated GPU.
final class ReplayCommandTests {
    private static final long MIB = 1 << 20;

    @TempDir
    private Path folder;

    private Path tiny;

    /// Two streams, an id used twice, a block of no bytes, one block live at the end; at most 6 MiB at once.
    @BeforeEach
    void writeTrace() throws IOException {
        tiny = ProgramRun.trace(
                folder,
                "tiny.csv",
                "a,0," + 2 * MIB + ",0",
                "a,1," + 4 * MIB + ",1",
                "f,0,0,0",
                "a,0,0,0",
                "f,0,0,0",
                "f,1,0,1",
                "a,2," + 2 * MIB + ",1");
    }

    @Test
    void countsWhatTheDirectAllocatorDoes() {
        ProgramRun run = replay("--allocator", "direct", "--format", "jsonl");

        assertThat(run.err().strip()).isEqualTo(ProgramRun.SIMULATED_NOTICE);
        assertThat(run.exitCode()).isZero();
        assertThat(run.out().lines()).hasSize(1);
        assertThat(run.out())
                .contains("\"trace\":\"tiny\",\"allocator\":\"direct\",\"device\":\"simulated\"")
                .contains("\"operations\":7,\"skippedRefusals\":0,\"passes\":3,\"failures\":0,\"nanosPerOperation\":")
                .contains("\"requestedPeakBytes\":" + 6 * MIB + ",\"reservedPeakBytes\":" + 6 * MIB + ",\"ratio\":1.0")
                .contains("\"driverCalls\":5,", "\"firstPassDriverCalls\":5,")
                .contains("\"metered\":{\"allocations\":9,\"frees\":9,\"requestedTotalBytes\":" + 24 * MIB
                        + ",\"requestedPeakBytes\":" + 6 * MIB
                        + "},\"swaps\":0,\"drained\":0,\"pools\":0,\"driverPools\":null,\"unreturnedBytes\":0}");
    }

    @ParameterizedTest
    @CsvSource({"1, 1 refused request is", "2, 2 refused requests are"})
    void refusedRequestsThatAreNotReplayedAreCounted(int count, String words) throws IOException {
        Path trace = Files.writeString(
                folder.resolve("refused.csv"),
                "op,id,bytes,stream,device,thread,nanos\na,0,1024,0,0,0,1\n" + "o,0,4096,0,0,0,2\n".repeat(count));
        String line = "replay " + trace + " --device=simulated --repeat=1 --allocator=direct --allocator=caching";

        assertThat(ProgramRun.inProcess(line.split(" ")).out())
                .containsOnlyOnce("\nrefused: " + words + " not replayed: see cistern fit\n");
        assertThat(ProgramRun.inProcess((line + " --format=json").split(" ")).out())
                .contains("\"operations\":1,\"skippedRefusals\":" + count + ",");
        assertThat(replay("--allocator", "direct").out()).doesNotContain("refused");
    }

    @Test
    void jsonIsOneDocument() {
        assertThat(replay("--allocator", "direct", "--repeat", "1", "--layer", "raw,buffer", "--format", "json")
                        .out())
                .matches("\\[\\n\\{.*},\\n\\{.*}\\n]\\n");
        assertThat(replay("--allocator", "direct", "--repeat", "1", "--format", "json")
                        .out())
                .matches("\\[\\n\\{.*}\\n]\\n");
        assertThat(replay("--allocator", "none", "--format", "json").out()).isEmpty();
    }

    @Test
    void aSnapshotIsTakenWhenMostIsLive() throws IOException {
        Path file = folder.resolve("peak.json");
        ProgramRun run = replay("--allocator", "direct", "--repeat", "1", "--snapshot", file.toString());

        assertThat(run.exitCode()).isZero();
        assertThat(Files.readString(file))
                .contains("\"reason\":\"peak of a replay\"", "\"requestedBytes\":" + 4 * MIB)
                .contains("\"event\":\"allocated\"");
        assertThat(run.err()).contains("cistern: " + file + ", ");
    }

    @Test
    void severalPeaksAreFilesOfTheirOwnAndOneReport() throws IOException {
        Path report = folder.resolve("peaks.html");
        String[] options = {"--snapshot", folder.resolve("peak.pickle").toString(), "--html", report.toString()};
        ProgramRun run = replay(
                options[0], options[1], options[2], options[3], "--allocator", "direct", "--allocator", "caching");

        assertThat(run.exitCode()).isZero();
        assertThat(run.err())
                .contains(
                        "cistern: " + folder.resolve("peak-tiny-direct.pickle") + ", ",
                        "cistern: " + folder.resolve("peak-tiny-caching.pickle") + ", ",
                        "cistern: " + report + ", ");
        assertThat(Files.readAllBytes(folder.resolve("peak-tiny-direct.pickle")))
                .startsWith(0x80);
        assertThat(Files.readAllBytes(folder.resolve("peak-tiny-caching.pickle")))
                .startsWith(0x80);
        assertThat(Files.readString(report)).contains("tiny direct", "tiny caching", "cistern-snapshot");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "sub/tiny.csv --allocator direct",
                "--allocator direct --layer raw,buffer",
                "--allocator direct --allocator direct"
            })
    void replaysOfTheSameNameKeepTheirSnapshots(String further) throws IOException {
        Files.copy(tiny, Files.createDirectory(folder.resolve("sub")).resolve("tiny.csv"));
        String line =
                further.replace("sub/", folder + "/sub/") + " --repeat 1 --snapshot " + folder.resolve("peak.json");
        ProgramRun run = replay(line.split(" "));

        assertThat(run.exitCode()).isZero();
        for (String name : List.of("peak-tiny-direct.json", "peak-tiny-direct-2.json")) {
            assertThat(folder.resolve(name)).isNotEmptyFile();
            assertThat(run.err()).containsOnlyOnce("cistern: " + folder.resolve(name) + ", ");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"--series", "--snapshot", "--html"})
    void aFullDiskIsAnError(String option) {
        ProgramRun run = replay("--allocator", "direct", "--repeat", "1", option, "/dev/full");
        assertThat(run.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(run.err()).contains("cistern: " + option + " /dev/full can't be written: ");
    }

    @ParameterizedTest
    @CsvSource({"--series, --html", "--series, --snapshot", "--snapshot, --html"})
    void resultsOfTwoKindsNeedTwoFiles(String option, String other) throws IOException {
        Path old = Files.createFile(folder.resolve("old"));
        Files.createLink(folder.resolve("link"), old);
        for (String[] names : new String[][] {{"new", "./new"}, {"old", "link"}}) {
            String file = folder.resolve(names[0]).toString();
            ProgramRun run = replay("--allocator", "direct", option, file, other, folder + "/" + names[1]);
            assertThat(run.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(run.err().strip())
                    .isEqualTo("cistern: " + option + " and " + other + " name the same file: " + file);
        }
        assertThat(old).isEmptyFile();
        assertThat(replay("--repeat", "1", option, "/dev/null", other, "/dev/null")
                        .exitCode())
                .isZero();
    }

    @Test
    void replaysThroughBuffersToo() {
        ProgramRun run =
                replay("--allocator", "caching", "--layer", "raw,buffer", "--work", "check", "--format", "jsonl");

        assertThat(run.err().strip()).isEqualTo(ProgramRun.SIMULATED_NOTICE);
        assertThat(run.out().lines()).hasSize(2);
        assertThat(run.out().lines().toList().getFirst()).contains("\"layer\":\"raw\"");
        assertThat(run.out().lines().toList().getLast())
                .contains("\"layer\":\"buffer\"", "\"mismatches\":0", "\"allocations\":9,\"frees\":9")
                .contains("\"unreturnedBytes\":0");
        assertThat(replay("--allocator", "caching", "--layer", "buffer").out()).contains("caching (buffers)");
    }

    @Test
    void tellsWhatTheDriversPoolsWereLike() {
        assertThat(replay("--allocator", "async", "--format", "jsonl").out())
                .contains("\"driverPools\":{\"releaseThresholdBytes\":9223372036854775807,\"reservedBytes\":33554432,"
                        + "\"usedBytes\":0,\"trims\":0,\"trimmedBytes\":0}");
    }

    @Test
    void withoutAnAllocatorAllThatCanRunAreTaken() {
        ProgramRun run = replay("--format", "jsonl", "--repeat", "1");

        assertThat(run.exitCode()).isZero();
        assertThat(run.out())
                .contains("\"allocator\":\"direct\"", "\"allocator\":\"caching\"")
                .as("windows only: by name")
                .doesNotContain("symmetric");
        assertThat(replay("--allocator", "symmetric").exitCode()).isZero();
        assertThat(run.out().lines()).allMatch(line -> line.contains("\"failures\":0") && line.endsWith("}"));
    }

    @Test
    void aWarmCachingAllocatorAsksTheDriverForNothing() {
        assertThat(replay("--allocator", "caching", "--format", "jsonl").out()).contains("\"driverCalls\":0,");
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "memset", "check"})
    void everyWorkRunsThroughEveryAllocator(String work) throws IOException {
        Path odd = ProgramRun.trace(
                folder, "odd.csv", "a,0,1,0", "a,1,1027,1", "a,2,4096,0", "f,1,0,1", "f,0,0,0", "a,3,2,1");
        ProgramRun run = ProgramRun.inProcess(
                "replay", odd.toString(), tiny.toString(), "--device=simulated", "--work", work, "--format=jsonl");

        assertThat(run.err().strip()).isEqualTo(ProgramRun.SIMULATED_NOTICE);
        assertThat(run.exitCode()).isZero();
        assertThat(run.out().lines())
                .isNotEmpty()
                .allMatch(line -> line.contains("\"failures\":0") && line.contains("\"unreturnedBytes\":0"))
                .allMatch(line -> line.contains("\"mismatches\":" + (work.equals("check") ? "0" : "null")))
                .allMatch(line -> line.contains("\"nanosPerOperation\":null") == work.equals("check"));
    }

    @Test
    void swappedAllocatorsDrainAndGiveEverythingBack() {
        ProgramRun run = replay("--allocator", "direct", "--format=jsonl", "--swap-every=2");

        // 7 operations a pass, 3 passes: a swap before every second operation but the first.
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out())
                .contains("\"reservedPeakBytes\":" + 6 * MIB)
                .contains("\"metered\":{\"allocations\":9,\"frees\":9,\"requestedTotalBytes\":" + 24 * MIB
                        + ",\"requestedPeakBytes\":null},\"swaps\":10,\"drained\":10,\"pools\":0,\"driverPools\":null,"
                        + "\"unreturnedBytes\":0}");
    }

    @Test
    void everyStreamHasAPoolOfItsOwn() {
        ProgramRun run = replay("--allocator", "caching", "--format=jsonl", "--scopes");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out())
                .contains("\"metered\":{\"allocations\":9,\"frees\":9,\"requestedTotalBytes\":" + 24 * MIB)
                .contains("\"swaps\":0,\"drained\":0,\"pools\":2,\"driverPools\":null,\"unreturnedBytes\":0}");
    }

    @Test
    void theTableNamesTraceAndAllocatorAndExplainsItself() {
        ProgramRun run = replay("--allocator", "direct");

        assertThat(run.exitCode()).isZero();
        assertThat(run.out().lines().skip(1).limit(3))
                .satisfiesExactly(
                        headings -> assertThat(headings).contains(" MiB "),
                        trace -> assertThat(trace).isEqualTo("tiny (peak requested: 6.00 MiB)"),
                        row -> assertThat(row).matches("  direct +[\\d,]+ +[\\d.,]+ +[\\d.,]+ +6\\.00 +1\\.000 +5 +5"));
        assertThat(run.out()).contains("host", "reserved", "ratio", "calls", "On a simulated GPU, 3 passes.");
        assertThat(run.out()).doesNotContain("failures");
        assertThat(run.out()).doesNotContain("\u001b");
    }

    @Test
    void anAllocationThatFailsIsCountedAndToldOnce() {
        ProgramRun run = replay("--allocator", "direct", "--capacity", "5MiB", "--format", "jsonl");

        assertThat(run.exitCode()).isEqualTo(3);
        assertThat(run.out()).contains("\"failures\":3,");
        assertThat(run.err()).containsOnlyOnce("out of memory").contains("cistern: tiny through direct: ");
    }

    @ParameterizedTest
    @CsvSource({"0.9x, 3", "1x, 0"})
    void aCapacityCanBeAMultipleOfWhatTheTraceRequests(String capacity, int exitCode) {
        ProgramRun run = replay("--allocator", "direct", "--capacity", capacity);
        assertThat(run.exitCode()).isEqualTo(exitCode);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                                             | 0
        --allocator=caching                  | 0
        --allocator=caching --allocator=async | 3
        """)
    void theExitCodeIsAboutTheNamedAllocatorsElseAboutTheFirst(String named, int exitCode) throws IOException {
        Path trace = ProgramRun.trace(folder, "small.csv", "a,0,1024,0");
        String line =
                "replay " + trace + " --device=simulated --repeat=1 --format=jsonl --capacity=4MiB"; // async: 32 MiB
        ProgramRun run = ProgramRun.inProcess((named == null ? line : line + " " + named).split(" "));

        assertThat(run.exitCode()).as(run.err()).isEqualTo(exitCode);
        boolean isAsyncTried = named == null || named.contains("async");
        assertThat(run.err().contains("small through async: out of memory")).isEqualTo(isAsyncTried);
    }

    @ParameterizedTest
    @CsvSource({
        "none, direct",
        "memset, direct",
        "check, direct",
        "check, caching",
        "check, caching:source=vmm",
        "check, vmm"
    })
    void theWorkTakesNothingOfTheCapacity(String work, String allocator) throws IOException {
        for (long byteSize : new long[] {2 * MIB, 6 * MIB}) {
            Path trace = ProgramRun.trace(folder, "one.csv", "a,0," + byteSize + ",0");
            ProgramRun run = ProgramRun.inProcess(("replay " + trace + " --device=simulated --repeat=1 --format=jsonl"
                            + " --capacity=" + byteSize + " --work=" + work + " --allocator=" + allocator)
                    .split(" "));
            assertThat(run.exitCode()).as(run.err()).isZero();
            assertThat(run.out()).contains("\"reservedPeakBytes\":" + byteSize);
        }
    }

    @Test
    void anAllocatorOfOneThreadIsRefusedInOneLine() throws IOException {
        Path trace = Files.writeString(
                folder.resolve("threads.csv"),
                "op,id,bytes,stream,device,thread,nanos\na,0,1024,0,0,0,1\na,1,1024,0,0,1,2\n");
        ProgramRun run = ProgramRun.inProcess(("replay " + trace
                        + " --device=simulated --repeat=1 --threads --allocator=confined:upstream=\"caching:source=vmm\"")
                .split(" "));
        assertThat(run.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(run.err().lines()).last().asString().startsWith("cistern: this allocator belongs to thread ");
    }

    /// Of the five, one has streams that take turns in less memory than their pieces leave.
    @Test
    void fourOfFiveTracesFitIntoTwoPercentMoreThanTheyRequest() {
        ProgramRun run = ProgramRun.inProcess(
                "replay",
                "--device=simulated",
                "--allocator=caching:fit=tight",
                "--capacity=1.02x",
                "--repeat=1",
                "--format=jsonl");
        assertThat(run.exitCode()).isEqualTo(3);
        assertThat(run.out().lines()).hasSize(5);
        assertThat(run.out().lines().filter(line -> line.contains("\"failures\":0,")))
                .hasSize(4)
                .noneMatch(line -> line.contains("vit_streams"));
        assertThat(run.err())
                .contains("vit_streams through caching:fit=tight: out of memory", " free of ", "synchronise");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        --allocator=cachin              | caching
        --allocator=direct:page=2MiB    | page
        --allocator=direct:             | direct:
        --device=cuda:99                | cuda:99
        --device=gpu                    | gpu
        --capacity=much                 | much
        --capacity=0                    | 0
        --capacity=0x                   | 0x
        --work=some                     | some
        --repeat=0                      | --repeat
        --swap-every=0                  | --swap-every
        --format=xml                    | xml
        --repeat=x                      | 'x' is not a whole number
        --repeat=99999999999            | '99999999999' is too large
        --unknown                       | there is no option --unknown
        --html=/no/such/x.html          | --html /no/such/x.html can't be written: there is no such folder
        --snapshot=/no/such/s.json      | --snapshot /no/such/s.json can't be written: there is no such folder
        --html=/tmp                     | --html /tmp can't be written: it is a folder
        --series=/no/such/series.csv    | /no/such/series.csv can't be written: there is no such folder
        none.csv                        | none.csv: no such file
        gpt2_trian                      | no trace of that name; known, nearest first: gpt2_train, resnet_train
        """)
    void badUsageIsOneLineThatNamesTheMistake(String argument, String named) {
        ProgramRun run = ProgramRun.inProcess(("replay " + tiny + " " + argument).split(" "));

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err().lines()).singleElement().asString().contains(named);
    }

    @Test
    void aSeriesHasWhatWasRequestedAndReservedOverTheFirstPass() throws IOException {
        Path series = folder.resolve("series.csv");
        ProgramRun run = ProgramRun.inProcess(
                "replay", "resnet_train", "--device=simulated", "--allocator=caching", "--series=" + series);
        List<String> lines = Files.readAllLines(series);

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(lines.getFirst()).isEqualTo("trace,allocator,device,operation,requestedBytes,reservedBytes");
        assertThat(lines).hasSizeBetween(350, 450);
        assertThat(lines.subList(1, lines.size())).allSatisfy(line -> {
            String[] cells = line.split(",", -1);
            assertThat(line).startsWith("resnet_train,\"caching\",simulated,");
            assertThat(Long.parseLong(cells[5])).isGreaterThanOrEqualTo(Long.parseLong(cells[4]));
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "async", "pytorch-native", "pytorch-expandable"})
    void aTrimGivesUnusedMemoryBack(String allocator) throws IOException {
        assertThat(reservedAfterAFree(allocator, "")).isGreaterThanOrEqualTo(64 * MIB);
        assertThat(reservedAfterAFree(allocator, "t,0,0,0,0,1,0\n")).isLessThanOrEqualTo(32 * MIB);
        assertThat(reservedAfterAFree(allocator, "t,0,0,0,0,2,0\n", "--threads"))
                .isLessThanOrEqualTo(32 * MIB);
    }

    /// Of 64 MiB all was freed, then a byte was asked for.
    private long reservedAfterAFree(String allocator, String between, String... options) throws IOException {
        Path trace = Files.writeString(folder.resolve("trimmed.csv"), """
                op,id,bytes,stream,device,thread,nanos
                a,1,67108864,5,0,1,0
                f,1,0,5,0,1,0
                %sa,2,1,5,0,1,0
                f,2,0,5,0,1,0
                """.formatted(between));
        Path series = folder.resolve("trimmed-series.csv");
        ProgramRun run = ProgramRun.inProcess(Stream.concat(
                        Stream.of(
                                "replay",
                                trace.toString(),
                                "--device=simulated",
                                "--allocator=" + allocator,
                                "--series=" + series),
                        Stream.of(options))
                .toArray(String[]::new));
        assertThat(run.exitCode()).as(run.err()).isZero();
        List<String> lines = Files.readAllLines(series);
        String third = lines.get(3);
        return Long.parseLong(third.substring(third.lastIndexOf(',') + 1));
    }

    @Test
    void aBadTraceAmongGoodOnesPrintsNothingButItsLine() throws IOException {
        Path bad = ProgramRun.trace(folder, "bad.csv", "a,1,8,0", "f,2,0,0");
        ProgramRun run = ProgramRun.inProcess("replay", tiny.toString(), bad.toString(), "--format", "jsonl");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err().strip()).isEqualTo(bad + ":3: frees id 2, which was never allocated");
    }

    @Test
    void aShippedTraceGoesByItsName() {
        ProgramRun run = ProgramRun.inProcess(
                "replay", "gnn_sample", "--allocator=direct", "--device=simulated", "--repeat=1", "--format=jsonl");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).startsWith("{\"trace\":\"gnn_sample\",").contains("\"operations\":18262,");
    }

    @Test
    void noLineOfTheTableOfAllTracesIsWiderThanATerminal() {
        ProgramRun run = ProgramRun.inProcess("replay", "llama_generate", "--device=simulated", "--repeat=1");

        assertThat(run.out().lines()).isNotEmpty().allMatch(line -> line.length() <= 120);
    }

    @Test
    void aFolderIsNoTrace() {
        assertThat(Files.isDirectory(folder)).isTrue();
        assertThat(ProgramRun.inProcess("replay", folder.toString()).exitCode()).isEqualTo(2);
    }

    @Test
    void aCommandThatThereIsNotIsAnsweredWithTheNearest() {
        assertThat(ProgramRun.inProcess("repaly").err())
                .startsWith("cistern: there is no command 'repaly'; known, nearest first: replay, ");
        assertThat(ProgramRun.inProcess().err())
                .startsWith("cistern: no command given; choose one of replay, import, fit, report, options, doctor,");
        assertThat(ProgramRun.inProcess("doctor", "now").err())
                .startsWith("cistern: 'now' is one argument too many (try cistern doctor --help)");
    }

    @Test
    void helpVersionAndCompletionAreFine() {
        assertThat(ProgramRun.inProcess("--help").exitCode()).isZero();
        assertThat(ProgramRun.inProcess("replay", "--help").out())
                .contains("--allocator", "--capacity", "--repeat", "refused");
        assertThat(ProgramRun.inProcess("--version").out()).matches("cistern \\d.*\\s*");
        assertThat(ProgramRun.inProcess("generate-completion").out()).contains("complete -F", "replay", "doctor");
        assertThat(ProgramRun.inProcess().exitCode()).isEqualTo(2);
    }

    private ProgramRun replay(String... options) {
        return ProgramRun.inProcess(java.util.stream.Stream.concat(
                        java.util.stream.Stream.of("replay", tiny.toString(), "--device=simulated"),
                        java.util.stream.Stream.of(options))
                .toArray(String[]::new));
    }
}
