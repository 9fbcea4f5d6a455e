package io.cistern.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.ProgramRun;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Traces of several threads and devices, played as such.
final class SpreadReplayTests {
    private static final int THREADS = 3;
    private static final int ROUNDS = 200;
    private static final String HEADER = "op,id,bytes,stream,device,thread,nanos";

    @TempDir
    private Path folder;

    private Path file;

    /// Three threads on two devices. Each allocates on its device and frees what the one before it allocated;
    /// every tenth block stays.
    @BeforeEach
    void writeTrace() throws Exception {
        List<String> rows = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            for (int thread = 0; thread < THREADS; thread++) {
                int id = round * THREADS + thread;
                String place = "," + (thread + 1) + "," + thread % 2 + ",";
                rows.add("a," + id + "," + (1 + id * 997L % 300_000) + place + (40 + thread) + ",0");
                int other = id - THREADS;
                if (other >= 0 && other % 10 != 0) {
                    rows.add("f," + other + ",0" + place + (40 + (thread + 1) % THREADS) + ",0");
                }
            }
        }
        file = trace("spread", rows);
    }

    private Path trace(String name, List<String> rows) throws Exception {
        return Files.write(
                folder.resolve(name + ".csv"),
                Stream.concat(Stream.of(HEADER), rows.stream()).toList());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        --threads --devices             | ,"threads":3,"devices":2}
        --threads --ahead=0 --devices   | ,"threads":3,"devices":2}
        --threads --layer=buffer        | ,"threads":3}
        --devices                       | ,"devices":2}
        --devices --scopes --swap-every=9 | ,"devices":2}
        """)
    void contentsStayAndEverythingComesBack(String options, String end) {
        ProgramRun run = replay(options + " --allocator=caching --allocator=async --work=check");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.err().strip()).isEqualTo(ProgramRun.SIMULATED_NOTICE);
        assertThat(run.out().lines())
                .hasSize(2)
                .allMatch(line -> line.endsWith(",\"unreturnedBytes\":0" + end))
                .allMatch(line -> line.contains("\"failures\":0") && line.contains("\"mismatches\":0"))
                .allMatch(line -> line.contains("\"metered\":{\"allocations\":" + 3 * ROUNDS * THREADS + ","));
    }

    @Test
    void withoutTheOptionsThereIsOneThreadAndDevice() throws Exception {
        assertThat(replay("--allocator=direct").out()).endsWith("\"unreturnedBytes\":0}\n");
        assertThat(columns(recorded("")).keySet()).singleElement().asString().endsWith(",0");
    }

    @Test
    void eachThreadPlaysItsRowsInTheirOrder() throws Exception {
        assertThat(columns(recorded("--threads --devices")).values())
                .containsExactlyInAnyOrderElementsOf(columns(file).values());
    }

    @Test
    void theOrderOfTheTraceCanBeKept() throws Exception {
        assertThat(sizes(recorded("--threads --devices --ahead=0"))).isEqualTo(sizes(file));
    }

    /// Once through, and recorded again, without what is freed at the end.
    private Path recorded(String options) throws Exception {
        Path again = folder.resolve("again.csv");
        ProgramRun run = replay(
                options + " --work=check --repeat=1 --allocator=logging:file=\"" + again + "\",upstream=caching");
        assertThat(run.exitCode()).as(run.err()).isZero();
        List<String> rows = Files.readAllLines(again);
        return Files.write(again, rows.subList(0, Files.readAllLines(file).size()));
    }

    /// The rows' kinds and sizes, by thread and device.
    private static Map<String, List<String>> columns(Path trace) throws Exception {
        return Files.readAllLines(trace).stream()
                .skip(1)
                .map(row -> row.split(",", -1))
                .collect(Collectors.groupingBy(
                        row -> row[5] + "," + row[4],
                        Collectors.mapping(row -> row[0] + (row[0].equals("a") ? row[2] : ""), Collectors.toList())));
    }

    private static List<String> sizes(Path trace) throws Exception {
        return Files.readAllLines(trace).stream()
                .skip(1)
                .map(row -> row.split(",", -1))
                .map(row -> row[0] + (row[0].equals("a") ? row[2] : "") + " on " + row[4])
                .toList();
    }

    @Test
    void aBlockThatTwoDevicesUseIsPlayedOnOne() throws Exception {
        file = trace("mixed", List.of("a,1,8,1,0,1,0", "a,2,8,1,1,1,0", "u,1,8,1,1,1,0"));
        ProgramRun run = replay("--devices --allocator=caching --work=check");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.err())
                .contains("mixed: its blocks are used on devices other than their own; all of it is played");
        assertThat(run.out()).endsWith(",\"devices\":1}\n");
    }

    @Test
    void moreDevicesThanThereAreArePlayedOnOne() throws Exception {
        List<String> rows = new ArrayList<>();
        for (int device = 0; device < 65; device++) {
            rows.add("a," + device + ",8,1," + device + ",1,0");
        }
        file = trace("many", rows);
        ProgramRun run = replay("--devices --allocator=caching");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.err())
                .contains(
                        "many uses 65 devices, but from simulated on there are only 64; all of it is played on one device");
        assertThat(run.out()).endsWith(",\"devices\":1}\n");
    }

    /// The peak is that of both devices, and a capacity is of each.
    @Test
    void peaksOfDevicesAreAddedUp() throws Exception {
        file = trace("peaks", List.of("a,1,4194304,1,0,1,0", "f,1,0,1,0,1,0", "a,2,2097152,1,1,2,0", "f,2,0,1,1,2,0"));
        assertThat(replay("--devices --allocator=direct --capacity=1x").out())
                .contains("\"requestedPeakBytes\":6291456,\"reservedPeakBytes\":6291456,", "\"failures\":0,");
        assertThat(replay("--allocator=direct").out()).contains("\"requestedPeakBytes\":4194304,");
    }

    @Test
    void anAllocationThatFailsOnAThreadIsCounted() throws Exception {
        file = trace("failing", List.of("a,1,4194304,1,0,1,0", "a,2,4194304,1,0,2,0", "f,1,0,1,0,2,0"));
        ProgramRun run = replay("--threads --allocator=direct --capacity=5MiB");

        assertThat(run.exitCode()).isEqualTo(3);
        assertThat(run.out()).contains("\"failures\":3,");
    }

    @Test
    void theTableTellsWhatWasPlayed() {
        assertThat(ProgramRun.inProcess(
                                "replay",
                                file.toString(),
                                "--device=simulated",
                                "--allocator=direct",
                                "--threads",
                                "--devices")
                        .out())
                .endsWith("\nPlayed spread: threads 3, devices 2.\n");
    }

    @Test
    void tooManyThreadsAreRefused() throws Exception {
        List<String> rows = new ArrayList<>();
        for (int thread = 0; thread < 1025; thread++) {
            rows.add("a," + thread + ",8,1,0," + thread + ",0");
        }
        file = trace("threads", rows);
        ProgramRun run = replay("--threads");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).contains("--threads: threads has 1025 threads; at most 1024 can be played");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        --threads --scopes        | --threads can't be used with --swap-every or --scopes
        --threads --swap-every=3  | --threads can't be used with --swap-every or --scopes
        --ahead=3                 | --ahead must be at least 0 and needs --threads
        --threads --ahead=-1      | --ahead must be at least 0 and needs --threads
        """)
    void optionsThatDoNotGoTogetherAreRefused(String options, String message) {
        ProgramRun run = replay(options);

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).contains(message);
    }

    private ProgramRun replay(String options) {
        return ProgramRun.inProcess(("replay " + file + " --device=simulated --format=jsonl " + options)
                .strip()
                .split(" +"));
    }
}
