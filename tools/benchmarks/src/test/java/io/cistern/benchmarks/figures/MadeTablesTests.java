package io.cistern.benchmarks.figures;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Tables of queries, of generated programs and of handles' threads follow from raw output.
final class MadeTablesTests {
    @TempDir
    private Path folder;

    private RawOutput raw(String file, String... lines) throws IOException {
        Files.createDirectories(folder.resolve("raw"));
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(folder.resolve("raw/" + file + ".gz")))) {
            out.write(String.join("\n", lines).getBytes(StandardCharsets.UTF_8));
        }
        Files.writeString(
                folder.resolve("README.md"), "| what | A test, 2026-11-29 | how | [it](raw/" + file + ".gz) |");
        return new RawOutput(folder, "measurements/");
    }

    private static String query(String mode, String allocator, int turn, String query, double seconds) {
        return "{\"mode\": \"%s\", \"allocator\": \"%s\", \"turn\": %d, \"query\": \"%s\", \"seconds\": %s,"
                        .formatted(mode, allocator, turn, query, seconds)
                + " \"allocatorSeconds\": 0.5, \"right\": true, \"mostBytes\": 3221225472, \"spilledBytes\": 1073741824}";
    }

    @Test
    void queriesHaveMediansAndSpread() throws IOException {
        RawOutput raw = raw(
                "queries.jsonl",
                query("one", "caching", 1, "Q1", 0.010),
                query("one", "caching", 1, "all", 2),
                query("one", "caching", 2, "all", 1.5),
                query("one", "caching", 3, "all", 2.5),
                query("one", "direct", 1, "all", 0.5),
                query("short", "caching", 1, "all", 4),
                "{\"mode\": \"short\", \"allocator\": \"direct\", \"turn\": 1, \"failure\": \"none\"}");
        assertThat(QueryFigures.byQuery(raw))
                .contains("| Q1 |  |  |  |  |  | 10.0 |")
                .contains("| all ten | 500 |  |  |  |  | 2000 ± 500 |");
        assertThat(QueryFigures.together(raw))
                .contains("| one thread: seconds | 0.50 |  |  |  |  | 2.00 ± 0.50 |")
                .contains("| memory short: GiB spilled |  |  |  |  |  | 1.00 |")
                .contains("Medians of alternating runs (3 with one thread, 1 with memory short)")
                .contains("A test, 2026-11-29 (raw: [queries](measurements/raw/queries.jsonl.gz))");
    }

    @Test
    void aWrongResultIsNoFigure() throws IOException {
        RawOutput raw = raw(
                "queries.jsonl", query("one", "caching", 1, "all", 2).replace("\"right\": true", "\"right\": false"));
        assertThatThrownBy(() -> QueryFigures.together(raw)).hasMessageContaining("wrong results");
    }

    @Test
    void generatedProgramsHaveARowForEachAllocator() throws IOException {
        String all = "{\"allocator\": \"%s\", \"family\": \"all\", \"meanRatio\": %s, \"worstRatio\": 2.5,"
                + " \"firstPassCalls\": 2160.0, \"laterPassCalls\": 32.6}";
        RawOutput raw = raw(
                "generated-programs.jsonl",
                "{\"allocator\": \"caching\", \"family\": \"graphs\"}",
                all.formatted("caching", "1.0407"),
                all.formatted("async", "1.25"),
                all.formatted("pytorch-native", "1.7"),
                all.formatted("pytorch-expandable", "1.2"));
        assertThat(ReplayFigures.generated(raw))
                .contains("| `caching` | 1.041 | 2.500 | 2,160 | 33 |")
                .contains("| the driver's pool | 1.250 |");
    }

    @Test
    void loadsOfThreadsHaveTheRangeOfTheirRuns() throws IOException {
        String row = "{\"what\": \"sums\", \"load\": \"pool\", \"threadsWithHandle\": 16,"
                + " \"ofThemEnded\": 0, \"created\": 16, \"servedAnotherThread\": 2}";
        RawOutput raw = raw(
                "handle-loads.jsonl",
                row,
                row.replace("\"created\": 16", "\"created\": 18"),
                "{\"what\": \"thread\", \"load\": \"pool\"}");
        assertThat(HandleFigures.loads(raw)).contains("| `pool` | 16 | 0 | 16–18 | 2 |");
    }
}
