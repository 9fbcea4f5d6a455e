package io.cistern.cli.imports;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.ProgramRun;
import io.cistern.cli.common.Content;
import io.cistern.cli.trace.Trace;
import io.cistern.cli.trace.TraceReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.zip.GZIPOutputStream;
import net.razorvine.pickle.Pickler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The two snapshots are PyTorch 2.11's own, of a program on an H100; the figures beside them are what PyTorch's
/// `memory_stats` said in that program.
class ImportCommandTests {
    private static final long REQUESTED_PEAK = 62_619_062;
    private static final long REQUESTED_WHEN_LATE_ENDED = 46_207_365;
    private static final int ALLOCATIONS = 90;

    @TempDir
    private Path folder;

    @Test
    void aSnapshotOfPyTorchHasItsPeakAndItsAllocations() throws Exception {
        Path made = folder.resolve("made.csv.gz");
        ProgramRun run = imported(resource("torch-whole.pickle"), "-o", made.toString());

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).isEmpty();
        assertThat(run.err().strip())
                .isEqualTo("cistern: 90 blocks, 0 of them alive before the recording began; streams: 2, devices: 1,"
                        + " refused requests: 1, peak bytes: 62,619,062");
        Trace trace = TraceReader.read(made);
        assertThat(trace.requestedPeakBytes()).isEqualTo(REQUESTED_PEAK);
        assertThat(trace.streamCount()).isEqualTo(2);
        assertThat(trace.operations()).isGreaterThan(ALLOCATIONS);
    }

    /// Its ring was too small and began late: 23 blocks are known by their frees or from the segments alone.
    @Test
    void whatWasAliveBeforeTheRecordingIsThereFromTheBeginning() throws Exception {
        ProgramRun run = imported(resource("torch-late.pickle"));

        assertThat(run.err()).contains("40 blocks, 23 of them alive before the recording began");
        List<String> rows = run.out().lines().skip(1).toList();
        assertThat(rows.subList(0, 23)).allMatch(row -> row.startsWith("a,"));
        long left = rows.stream()
                .map(row -> row.split(",", -1))
                .mapToLong(row -> (row[0].equals("a") ? 1 : row[0].equals("f") ? -1 : 0) * Long.parseLong(row[2]))
                .sum();
        assertThat(left).isEqualTo(REQUESTED_WHEN_LATE_ENDED);
    }

    @Test
    void whatIsImportedCanBeReplayed() throws Exception {
        Path made = folder.resolve("late.csv");
        imported(resource("torch-late.pickle"), "--output=" + made);

        ProgramRun replay = ProgramRun.inProcess(
                "replay", made.toString(), "--device=simulated", "--allocator=caching", "--work=check");

        assertThat(replay.exitCode()).as(replay.err()).isZero();
        assertThat(replay.out()).contains("late");
    }

    /// They would give the new trace the call stacks and the reserved bytes of another program.
    @Test
    void detailsOfAnEarlierImportAreDeleted() throws Exception {
        Path made = folder.resolve("st.csv");
        Path details = folder.resolve("st.details.json");
        imported(resource("torch-whole.pickle"), "-o", made.toString());
        assertThat(details).exists();

        ProgramRun run = imported(resource("rmm-bare-hex.csv"), "-o", made.toString());

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(details).doesNotExist();
    }

    /// The same small snapshot, pickled by Python 3.11.
    @ParameterizedTest
    @CsvSource(textBlock = """
            0, KGRwMApWc2VnbWVudHMKcDEKKGxwMgpzVmRldmljZV90cmFjZXMKcDMKKGxwNAoobHA1CihkcDYKVmFjdGlvbgpwNwpWYWxsb2MKcDgKc1ZhZGRyCnA5CkwxMzk2Mzc5NzY3Mjc1NTJMCnNWc2l6ZQpwMTAKSTEwMApzVnN0cmVhbQpwMTEKSTcKc1Z0aW1lX3VzCnAxMgpJNQpzVmZyYW1lcwpwMTMKKGxwMTQKKGRwMTUKVm5hbWUKcDE2ClZzdGVwCnAxNwpzVmZpbGVuYW1lCnAxOApWL3QvdHJhaW4ucHkKcDE5CnNWbGluZQpwMjAKSTcKc2FzVngKcDIxCkkwMQpzVnkKcDIyCk5zVnoKcDIzCkYxLjUKc1Z1CnAyNApW6Vx1NGUyZFx1MDA1YyInCnAyNQpzYShkcDI2Cmc3ClZvb20KcDI3CnNWZGV2aWNlX2ZyZWUKcDI4Ckk5CnNnMTAKSTIwMApzZzExCkk3CnNnMTIKSTYKc2cxMwpnMTQKc2Fhcy4=
            1, fXEAKFgIAAAAc2VnbWVudHNxAV1xAlgNAAAAZGV2aWNlX3RyYWNlc3EDXXEEXXEFKH1xBihYBgAAAGFjdGlvbnEHWAUAAABhbGxvY3EIWAQAAABhZGRycQlMMTM5NjM3OTc2NzI3NTUyTApYBAAAAHNpemVxCktkWAYAAABzdHJlYW1xC0sHWAcAAAB0aW1lX3VzcQxLBVgGAAAAZnJhbWVzcQ1dcQ59cQ8oWAQAAABuYW1lcRBYBAAAAHN0ZXBxEVgIAAAAZmlsZW5hbWVxElgLAAAAL3QvdHJhaW4ucHlxE1gEAAAAbGluZXEUSwd1YVgBAAAAeHEVSTAxClgBAAAAeXEWTlgBAAAAenEXRz/4AAAAAAAAWAEAAAB1cRhYCAAAAMOp5LitXCIncRl1fXEaKGgHWAMAAABvb21xG1gLAAAAZGV2aWNlX2ZyZWVxHEsJaApLyGgLSwdoDEsGaA1oDnVlYXUu
            2, gAJ9cQAoWAgAAABzZWdtZW50c3EBXXECWA0AAABkZXZpY2VfdHJhY2VzcQNdcQRdcQUofXEGKFgGAAAAYWN0aW9ucQdYBQAAAGFsbG9jcQhYBAAAAGFkZHJxCYoGAAAAAAB/WAQAAABzaXplcQpLZFgGAAAAc3RyZWFtcQtLB1gHAAAAdGltZV91c3EMSwVYBgAAAGZyYW1lc3ENXXEOfXEPKFgEAAAAbmFtZXEQWAQAAABzdGVwcRFYCAAAAGZpbGVuYW1lcRJYCwAAAC90L3RyYWluLnB5cRNYBAAAAGxpbmVxFEsHdWFYAQAAAHhxFYhYAQAAAHlxFk5YAQAAAHpxF0c/+AAAAAAAAFgBAAAAdXEYWAgAAADDqeS4rVwiJ3EZdX1xGihoB1gDAAAAb29tcRtYCwAAAGRldmljZV9mcmVlcRxLCWgKS8hoC0sHaAxLBmgNaA51ZWF1Lg==
            3, gAN9cQAoWAgAAABzZWdtZW50c3EBXXECWA0AAABkZXZpY2VfdHJhY2VzcQNdcQRdcQUofXEGKFgGAAAAYWN0aW9ucQdYBQAAAGFsbG9jcQhYBAAAAGFkZHJxCYoGAAAAAAB/WAQAAABzaXplcQpLZFgGAAAAc3RyZWFtcQtLB1gHAAAAdGltZV91c3EMSwVYBgAAAGZyYW1lc3ENXXEOfXEPKFgEAAAAbmFtZXEQWAQAAABzdGVwcRFYCAAAAGZpbGVuYW1lcRJYCwAAAC90L3RyYWluLnB5cRNYBAAAAGxpbmVxFEsHdWFYAQAAAHhxFYhYAQAAAHlxFk5YAQAAAHpxF0c/+AAAAAAAAFgBAAAAdXEYWAgAAADDqeS4rVwiJ3EZdX1xGihoB1gDAAAAb29tcRtYCwAAAGRldmljZV9mcmVlcRxLCWgKS8hoC0sHaAxLBmgNaA51ZWF1Lg==
            4, gASV/wAAAAAAAAB9lCiMCHNlZ21lbnRzlF2UjA1kZXZpY2VfdHJhY2VzlF2UXZQofZQojAZhY3Rpb26UjAVhbGxvY5SMBGFkZHKUigYAAAAAAH+MBHNpemWUS2SMBnN0cmVhbZRLB4wHdGltZV91c5RLBYwGZnJhbWVzlF2UfZQojARuYW1llIwEc3RlcJSMCGZpbGVuYW1llIwLL3QvdHJhaW4ucHmUjARsaW5llEsHdWGMAXiUiIwBeZROjAF6lEc/+AAAAAAAAIwBdZSMCMOp5LitXCInlHV9lChoB4wDb29tlIwLZGV2aWNlX2ZyZWWUSwloCkvIaAtLB2gMSwZoDWgOdWVhdS4=
            5, gAWV/wAAAAAAAAB9lCiMCHNlZ21lbnRzlF2UjA1kZXZpY2VfdHJhY2VzlF2UXZQofZQojAZhY3Rpb26UjAVhbGxvY5SMBGFkZHKUigYAAAAAAH+MBHNpemWUS2SMBnN0cmVhbZRLB4wHdGltZV91c5RLBYwGZnJhbWVzlF2UfZQojARuYW1llIwEc3RlcJSMCGZpbGVuYW1llIwLL3QvdHJhaW4ucHmUjARsaW5llEsHdWGMAXiUiIwBeZROjAF6lEc/+AAAAAAAAIwBdZSMCMOp5LitXCInlHV9lChoB4wDb29tlIwLZGV2aWNlX2ZyZWWUSwloCkvIaAtLB2gMSwZoDWgOdWVhdS4=
            """)
    void everyProtocolOfPicklesIsRead(int protocol, String pickle) throws Exception {
        Path file = Files.write(
                folder.resolve(protocol + ".pickle"), Base64.getDecoder().decode(pickle));

        ProgramRun run = imported(file, "-o", folder.resolve("made.csv").toString());

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(folder.resolve("made.csv")).content().isEqualTo("""
                        op,id,bytes,stream,device,thread,nanos,stack
                        a,0,100,7,0,0,0,1
                        o,0,200,7,0,0,1000,1
                        """);
        assertThat(folder.resolve("made.details.json"))
                .content()
                .contains(
                        "\"frames\":[\"step(/t/train.py:7)\"]", "\"refused\":[{\"freeBytes\":9,\"reservedBytes\":0}]");
    }

    /// A list that another one holds a thousand times over, and so on: a few bytes that stand for billions of values.
    @Test
    void aPickleThatNamesAListAMillionTimesIsRefused() throws Exception {
        StringBuilder bomb = new StringBuilder("(lp0\n0");
        for (int level = 1; level < 12; level++) {
            bomb.append("(lp").append(level).append('\n');
            bomb.append(("g" + (level - 1) + "\na").repeat(1000)).append(level < 11 ? "0" : "");
        }
        Path file = Files.writeString(
                folder.resolve("bomb.pickle"), "(dS'segments'\n(lsS'device_traces'\n" + bomb.append("s."));

        assertThat(refusal(file)).contains("holds no dictionaries");
    }

    @Test
    void historiesOfSeveralDevicesAreJoinedByTheirTimes() throws Exception {
        Path file = pickled(Map.of(
                "segments",
                List.of(),
                "device_traces",
                List.of(
                        List.of(entry("alloc", 512, 20), entry("free", 512, 40)),
                        List.of(entry("alloc", 512, 10), entry("segment_alloc", 0, 15), entry("alloc", 1024, 30)))));

        ProgramRun run = imported(file);

        assertThat(run.out().lines())
                .containsExactly(
                        "op,id,bytes,stream,device,thread,nanos",
                        "a,0,100,7,1,0,0",
                        "a,1,100,7,0,0,10000",
                        "a,2,100,7,1,0,20000",
                        "f,1,100,7,0,0,30000");
        assertThat(run.err()).contains("3 blocks, ", "streams: 2, devices: 2", "peak bytes: 300");
    }

    /// The second segment was released by an allocation, to try again.
    @Test
    void segmentsThatEmptyCacheReleasedAreOneTrim() throws Exception {
        List<Map<String, Object>> history = List.of(
                entry("alloc", 512, 20),
                entry("free", 512, 30),
                released("segment_free", "step", 40),
                released("segment_free", "empty_cache", 50),
                released("segment_unmap", "empty_cache", 60),
                entry("alloc", 512, 70),
                released("segment_free", "empty_cache", 80));

        ProgramRun run = imported(pickled(Map.of("segments", List.of(), "device_traces", List.of(history))));

        assertThat(run.out().lines().skip(1))
                .containsExactly(
                        "a,0,100,7,0,0,0",
                        "f,0,100,7,0,0,10000",
                        "t,0,0,0,0,0,30000",
                        "a,1,100,7,0,0,50000",
                        "t,0,0,0,0,0,60000");
        assertThat(run.err()).contains("2 blocks, ", "streams: 1, devices: 1");
    }

    /// Their segments stay, and the history does not say which blocks lay there.
    @Test
    void withPrivatePoolsThereAreNoTrims() throws Exception {
        Object pool = new Object[] {1, 0};
        Map<String, Object> segment =
                Map.of("device", 0, "address", 4096, "total_size", 100, "segment_pool_id", pool, "blocks", List.of());
        List<Map<String, Object>> history =
                List.of(entry("alloc", 512, 20), released("segment_free", "empty_cache", 50), entry("free", 512, 70));

        ProgramRun run = imported(pickled(Map.of("segments", List.of(segment), "device_traces", List.of(history))));

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out().lines().skip(1)).containsExactly("a,0,100,7,0,0,0", "f,0,100,7,0,0,50000");
    }

    @Test
    void aHistoryOfTrimsAloneIsNone() throws Exception {
        Path file = pickled(Map.of(
                "segments", List.of(), "device_traces", List.of(List.of(released("segment_free", "empty_cache", 50)))));

        assertThat(refusal(file)).contains("_record_memory_history()");
    }

    private static Map<String, Object> released(String action, String function, long micros) {
        Map<String, Object> event = new HashMap<>(entry(action, 4096, micros));
        event.put(
                "frames",
                List.of(
                        Map.of("name", function, "filename", "/t/memory.py", "line", 224),
                        Map.of("name", "main", "filename", "/t/train.py", "line", 9)));
        return event;
    }

    /// Threads on two processors may read clocks that differ.
    @Test
    void aClockThatGoesBackChangesNoOrder() throws Exception {
        Path file = pickled(Map.of(
                "segments",
                List.of(),
                "device_traces",
                List.of(List.of(
                        entry("alloc", 512, 20),
                        entry("free_requested", 512, 19),
                        entry("free_completed", 512, 18),
                        entry("alloc", 512, 21)))));

        ProgramRun run = imported(file);

        assertThat(run.out().lines().skip(1))
                .containsExactly("a,0,100,7,0,0,2000", "f,0,100,7,0,0,2000", "a,1,100,7,0,0,3000");
    }

    @Test
    void aLogOfRmmKeepsThreadsStreamsTimesAndRefusals() throws Exception {
        Path file = Files.writeString(folder.resolve("rmm.csv"), """
                Thread,Time,Action,Pointer,Size,Stream
                9001,23:59:59.999000,allocate,0x7f0000000000,1000,0x0
                9002,23:59:59:999500,allocate,0x7f0000000400,2000,0x55aa
                9001,00:00:00.000500,free,0x7f0000000000,1000,0x0
                9002,00:00:01.000000,allocate failure,0x0,5000,0x55aa
                9002,00:00:02.000000,free,0x7f0000000800,70,0x55aa
                """);

        ProgramRun run = imported(file);

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out().lines())
                .containsExactly(
                        "op,id,bytes,stream,device,thread,nanos",
                        "a,0,70,21930,0,0,0",
                        "a,1,1000,0,0,1,0",
                        "a,2,2000,21930,0,0,500000",
                        "f,1,1000,0,0,1,1500000",
                        "o,0,5000,21930,0,0,1001000000",
                        "f,0,70,21930,0,0,2001000000");
        assertThat(run.err()).contains("3 blocks, 1 of them alive before", "refused requests: 1");
    }

    @Test
    void addressesOfRmmMayLackTheirPrefix() throws Exception {
        ProgramRun run = imported(resource("rmm-bare-hex.csv"));

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.err()).contains("1 blocks, 0 of them alive", "refused requests: 1, peak bytes: 1,024");
    }

    @Test
    void aRowThatAKillCutOffIsLeftOutWithAWarning() throws Exception {
        Path file = resource("rmm-cut-off.csv");

        ProgramRun run = imported(file);

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.err().lines().findFirst().orElseThrow())
                .isEqualTo("cistern: " + file + ":4: is not a row of an RMM log: it has 3 columns, not 6; the file ends"
                        + " there, so this row is left out");
        assertThat(run.out().lines().skip(1)).containsExactly("a,0,1024,0,0,0,0", "f,0,1024,0,0,0,21000");
    }

    @Test
    void midnightPassesOnceAlsoWhereRowsChangedPlaces() throws Exception {
        Path file = Files.writeString(folder.resolve("rmm.csv"), Content.RMM_COLUMNS + """

                1,23:59:59.999999999,allocate,0x1000,10,0
                1,00:00:00.000000001,allocate,0x2000,10,0
                2,23:59:59.999999999,allocate,0x3000,10,0
                1,00:00:00.000000003,free,0x2000,10,0
                """);

        assertThat(imported(file).out().lines().skip(1))
                .containsExactly("a,0,10,0,0,0,0", "a,1,10,0,0,0,2", "a,2,10,0,0,1,0", "f,1,10,0,0,0,4");
    }

    @Test
    void anAllocationAtALiveAddressEndsTheBlockThere() throws Exception {
        Path file = Files.writeString(folder.resolve("rmm.csv"), """
                Thread,Time,Action,Pointer,Size,Stream
                1,10:00:00.000000,allocate,0x1000,10,0
                1,10:00:00.000000,allocate,0x1000,20,0
                """);

        assertThat(imported(file).out().lines().skip(1))
                .containsExactly("a,0,10,0,0,0,0", "f,0,10,0,0,0,0", "a,1,20,0,0,0,0");
    }

    @Test
    void aGzippedLogIsReadToo() throws Exception {
        Path file = folder.resolve("rmm.csv.gz");
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(file))) {
            out.write((Content.RMM_COLUMNS + "\n1,10:00:00.000000,allocate,0x1000,10,0\n").getBytes());
        }

        assertThat(imported(file).out()).contains("a,0,10,0,0,0,0");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "1,10:00:00.000000,allocate,0x1000,much,0",
                "1,10:00:00.000000,allocate,0x1000,-10,0",
                "1,10:00:00.000000,allocate,0x1000,1152921504606846977,0",
                "1,10:00:00.000000,allocate,somewhere,10,0",
                "1,10:00:00.000000,allocate,0x1000,10,ffffffffffffffff",
                "1,9999999999999999:00:00.0,allocate,0x1000,10,0",
                "1,10 o'clock,allocate,0x1000,10,0",
                "1,10:00:00.000000,allocate,0x1000"
            })
    void aWrongRowOfALogIsNamed(String row) throws Exception {
        Path file = Files.writeString(folder.resolve("rmm.csv"), Content.RMM_COLUMNS + "\n" + row + "\n");

        ProgramRun run = imported(file);

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err().lines()).singleElement().asString().startsWith(file.toString());
    }

    @Test
    void whatIsNoneIsRefusedWithTheReason() throws Exception {
        Path text = Files.writeString(folder.resolve("text"), "no pickle at all");
        Path number = pickled(7);
        Path noHistory = pickled(Map.of("segments", List.of(), "device_traces", List.of(List.of())));
        Path broken = pickled(Map.of("segments", List.of(), "device_traces", List.of(List.of("alloc"))));
        Path cut = folder.resolve("cut.pickle");
        byte[] whole = Files.readAllBytes(resource("torch-whole.pickle"));
        Files.write(cut, java.util.Arrays.copyOf(whole, whole.length / 2));

        assertThat(refusal(text))
                .endsWith(": is not a PyTorch snapshot, nor an RMM log with the columns"
                        + " Thread,Time,Action,Pointer,Size,Stream");
        assertThat(refusal(number)).contains("not a PyTorch snapshot");
        assertThat(refusal(noHistory)).contains("_record_memory_history()");
        assertThat(refusal(broken)).contains("holds no dictionaries");
        assertThat(refusal(cut)).startsWith(cut + ": ");
        assertThat(refusal(folder.resolve("nothing"))).endsWith(": no such file");
        assertThat(refusal(folder)).isEqualTo(folder + ": is a folder; name a file in it");
    }

    /// A pickle of few bytes that names one list of events again and again.
    @Test
    void listsThatRepeatAreNotUnfolded() throws Exception {
        List<Map<String, Object>> events = java.util.Collections.nCopies(3000, entry("alloc", 512, 20));
        Path file = pickled(
                Map.of("segments", List.of(), "device_traces", java.util.Collections.nCopies(1_000_000, events)));

        assertThat(refusal(file)).endsWith("has more than 8388608 events, segments and blocks");
    }

    @Test
    void noLogIsImportedThatNoReplayWouldRead() throws Exception {
        StringBuilder rows = new StringBuilder(Content.RMM_COLUMNS + "\n");
        for (int i = 1; i <= 1025; i++) {
            rows.append("1,10:00:00.000000,allocate,")
                    .append(i)
                    .append(",8,")
                    .append(i)
                    .append('\n');
        }
        Path streams = Files.writeString(folder.resolve("streams.csv"), rows);
        rows.setLength(Content.RMM_COLUMNS.length() + 1);
        for (int i = 1; i <= 8; i++) {
            rows.append("1,10:00:00.000000,allocate,").append(i).append(",1152921504606846976,0\n");
        }
        Path bytes = Files.writeString(folder.resolve("bytes.csv"), rows);

        assertThat(refusal(streams)).isEqualTo(streams + ": more than 1024 streams");
        assertThat(refusal(bytes)).isEqualTo(bytes + ": more than 8 EiB live at once");
    }

    @Test
    void anOutputThatCannotBeWrittenIsNamed() throws Exception {
        ProgramRun run = imported(resource("torch-late.pickle"), "-o", "/dev/full");
        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err().strip()).startsWith("cistern: --output /dev/full can't be written");
    }

    private static Map<String, Object> entry(String action, long address, long micros) {
        return Map.of("action", action, "addr", address, "size", 100, "stream", 7, "time_us", micros);
    }

    private static String refusal(Path file) {
        ProgramRun run = imported(file);
        assertThat(run.exitCode()).isEqualTo(2);
        return run.err().strip();
    }

    private static ProgramRun imported(Path file, String... options) {
        String[] line = new String[options.length + 2];
        line[0] = "import";
        line[1] = file.toString();
        System.arraycopy(options, 0, line, 2, options.length);
        return ProgramRun.inProcess(line);
    }

    private Path pickled(Object value) throws IOException {
        return Files.write(Files.createTempFile(folder, "made", ".pickle"), new Pickler().dumps(value));
    }

    private Path resource(String name) throws IOException {
        Path file = folder.resolve(name);
        try (InputStream in = Objects.requireNonNull(ImportCommandTests.class.getResourceAsStream(name))) {
            Files.write(file, in.readAllBytes());
        }
        return file;
    }
}
