package io.cistern.benchmarks.figures;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

/// Raw measurements of one run as tables for people: a line for each thing measured, a column for each allocator.
/// What has no files has no table.
public final class MakeSummary {
    private static final String NONE = "-";
    private static final String GARBAGE = ":gc.alloc.rate.norm";

    private final Path raw;
    private final PrintStream out;

    private MakeSummary(Path raw, PrintStream out) {
        this.raw = raw;
        this.out = out;
    }

    /// Argument: the raw folder.
    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 1) {
            System.err.println("usage: MakeSummary RAW-FOLDER");
            System.exit(2);
        }
        new MakeSummary(Path.of(arguments[0]), new PrintStream(System.out, true, StandardCharsets.UTF_8)).print();
    }

    private void print() throws IOException {
        replays();
        checks();
        bench();
        latencies();
        async();
        thresholds();
        collectives();
        buffers();
        jmh();
    }

    private void replays() throws IOException {
        List<Rows.Row> rows = Rows.json(raw, "replay.jsonl", "replay-{peers,cupy}.jsonl", "threshold-replay.jsonl");
        Function<Rows.Row, String> line = row -> row.text("work") + ' ' + row.text("trace");
        table("Replay: reserved / requested at the peak", rows, line, row -> number(row, "ratio", "%.3f"));
        ratios(rows);
        table("Replay: host ns an operation, after the first pass", rows, line, MakeSummary::nanosPerOperation);
        table("Replay: wall ms a pass, after the first", rows, line, row -> number(row, "wallMillis", "%.2f"));
        table("Replay: wall ms of the first pass", rows, line, row -> number(row, "firstPassMillis", "%.2f"));
        table("Replay: driver calls by pass", rows, line, row -> row.textOr("passDriverCalls", NONE));
    }

    /// Over all traces.
    private void ratios(List<Rows.Row> rows) {
        Map<String, DoubleSummaryStatistics> logarithms = new LinkedHashMap<>();
        for (Rows.Row row : rows) {
            String ratio = row.textOr("ratio", "null");
            if (!ratio.equals("null")) {
                logarithms
                        .computeIfAbsent(
                                row.text("work") + ' ' + row.text("allocator"), _ -> new DoubleSummaryStatistics())
                        .accept(Math.log(Double.parseDouble(ratio)));
            }
        }
        List<String[]> cells = new ArrayList<>();
        logarithms.forEach((name, all) -> cells.add(new String[] {
            name,
            String.format(Locale.ROOT, "%.3f", Math.exp(all.getAverage())),
            String.format(Locale.ROOT, "%.3f", Math.exp(all.getMax())),
            String.valueOf(all.getCount())
        }));
        print("Replay: reserved / requested over all traces", List.of("", "geometric mean", "worst", "rows"), cells);
    }

    private static String nanosPerOperation(Rows.Row row) {
        return number(row, "nanosPerOperation", "%.0f");
    }

    private void checks() throws IOException {
        table(
                "Replay with contents checked: words changed, reserved / requested",
                Rows.json(raw, "replay-check.jsonl"),
                row -> row.text("trace"),
                row -> row.text("mismatches") + ", " + number(row, "ratio", "%.3f"));
    }

    private void bench() throws IOException {
        List<Rows.Row> rows = Rows.json(raw, "bench.jsonl", "bench-peers.jsonl", "bench-zgc.jsonl");
        Function<Rows.Row, String> line = row -> String.join(
                " ",
                row.text("scenario"),
                row.text("variant"),
                "<= " + row.text("byteSize") + " B,",
                "threads " + row.text("threads") + ',',
                "live " + row.text("liveBlocks")
                        + (row.textOr("collector", "G1").startsWith("Z") ? ", ZGC" : ""));
        table("Bench: ns a pair", rows, line, row -> number(row, "nanosPerPair", "%.1f"));
        table("Bench: p99.9 ns", rows, line, row -> number(row, "p999Nanos", "%.0f"));
        table("Bench: million pairs a second", rows, line, row -> number(row, "pairsPerSecond", 1e-6, "%.2f"));
    }

    private void latencies() throws IOException {
        List<Rows.Row> rows = Rows.json(raw, "latency.jsonl");
        Function<Rows.Row, String> line = row -> row.text("measured") + " beside " + row.text("beside");
        List<String[]> cells = new ArrayList<>();
        for (Rows.Row row : rows) {
            cells.add(new String[] {
                line.apply(row),
                number(row, "p50Nanos", "%.0f"),
                number(row, "p99Nanos", "%.0f"),
                number(row, "p999Nanos", "%.0f")
            });
        }
        print("Latency, ns", List.of("", "p50", "p99", "p99.9"), cells);
    }

    private void async() throws IOException {
        table(
                "Pairs of async beside C: ns a pair (tenths of the rounds below and above; over C's round)",
                Rows.json(raw, "async-pair.jsonl"),
                row -> row.text("byteSize") + " B, threads " + row.text("threads"),
                row -> number(row, "nanosPerPair", "%.0f") + " (" + number(row, "p10", "%.0f") + "-"
                        + number(row, "p90", "%.0f") + "; " + number(row, "overC", "%+.1f") + ")");
        table(
                "Allocate, kernel, free, synchronise: us (least of the rounds)",
                Rows.json(raw, "async-steady.jsonl"),
                row -> row.text("byteSize") + " B",
                row -> number(row, "micros", "%.1f") + " (" + number(row, "least", "%.1f") + ")");
        table(
                "Frees of blocks that other streams use: host ns, ms until the first stream and all are done, GiB reserved",
                Rows.json(raw, "async-uses.jsonl"),
                row -> row.text("blocks") + " blocks",
                row -> number(row, "nanosPerFree", "%.0f") + ", " + number(row, "workMillis", "%.1f") + ", "
                        + number(row, "allMillis", "%.1f") + ", "
                        + number(row, "reservedPeakBytes", 1.0 / (1 << 30), "%.2f"));
    }

    private void thresholds() throws IOException {
        List<Rows.Row> rows = Rows.json(raw, "threshold-steps.jsonl");
        List<String[]> cells = new ArrayList<>();
        for (Rows.Row row : rows) {
            boolean steady = row.text("measured").equals("steady");
            cells.add(new String[] {
                row.text("allocator"),
                steady ? "steady, " + row.text("byteSize") + " B" : "phases",
                steady ? number(row, "nanos", 1e-3, "%.2f us a turn") : number(row, "millis", "%.0f ms"),
                steady
                        ? number(row, "lowestNanos", 1e-3, "%.2f") + " to " + number(row, "highestNanos", 1e-3, "%.2f")
                        : number(row, "heldBytes", 1.0 / (1 << 30), "%.2f GiB held, small after ")
                                + row.text("smallStepsUntilFallen")
            });
        }
        print("Release thresholds", List.of("", "what", "took", "lowest to highest; held"), cells);
    }

    private void collectives() throws IOException {
        List<Rows.Row> rows = Rows.json(raw, "nccl.jsonl");
        Function<Rows.Row, String> line = row -> row.text("byteSize");
        table(
                "All-reduce, us (so much longer ours took in the same rounds)",
                rows,
                line,
                row -> number(row, "micros", "%.2f") + " (" + number(row, "overMicros", "%.2f") + ")");
        table("All-reduce, bus GB/s", rows, line, row -> number(row, "busGigabytesPerSecond", "%.1f"));
    }

    private void buffers() throws IOException {
        table(
                "Copies, launches, JCuda programs: us (times as fast as in C, or as before)",
                Rows.json(raw, "buffers.jsonl"),
                row -> row.text("measured"),
                row -> number(row, "micros", "%.2f") + " (" + number(row, "faster", "%.2f") + ")");
        table(
                "Array copies: us (times as fast as in C)",
                Rows.json(raw, "array-copies.jsonl"),
                row -> row.text("allocator"),
                row -> row.text("measured"),
                row -> number(row, "micros", "%.1f") + " (" + number(row, "faster", "%.2f") + ")");
        table(
                "Start-up: ms over an empty main",
                Rows.json(raw, "startup.jsonl"),
                row -> row.text("started"),
                _ -> "median",
                row -> number(row, "overEmpty", "%.0f"));
        table(
                "Replay through buffers: host ns an operation",
                Rows.json(raw, "buffers-replay.jsonl"),
                row -> row.text("trace") + ' ' + row.text("layer"),
                MakeSummary::nanosPerOperation);
    }

    private void jmh() throws IOException {
        List<String[]> cells = new ArrayList<>();
        Map<String, JmhLog> logs = new LinkedHashMap<>();
        for (Rows.Row row : Rows.csv(raw, "jmh-*.csv")) {
            if (!row.text("Benchmark").contains(":")) {
                if (!logs.containsKey(row.file())) {
                    logs.put(row.file(), new JmhLog(raw.resolve(row.file() + ".txt")));
                }
                List<Double> iterations = logs.get(row.file()).next();
                cells.add(new String[] {
                    row.file() + ' ' + benchmark(row),
                    number(row, "Score", "%.2f"),
                    number(row, "Score Error (99.9%)", "%.2f"),
                    iterations.isEmpty() ? NONE : "%.2f".formatted(iterations.get(iterations.size() / 2)),
                    iterations.isEmpty() ? NONE : "%.2f".formatted(iterations.getFirst()),
                    NONE
                });
            } else if (row.text("Benchmark").endsWith(GARBAGE)) { // After the row that it belongs to.
                cells.getLast()[5] = number(row, "Score", "%.2f");
            }
        }
        print("JMH", List.of("", "ns/op", "+-", "median", "lowest", "garbage, B/op"), cells);
    }

    private static String benchmark(Rows.Row row) {
        String name = row.text("Benchmark").replaceFirst("^.*\\.([A-Z])", "$1");
        StringBuilder text = new StringBuilder(name).append(" -t ").append(row.text("Threads"));
        row.fields().forEach((key, value) -> {
            if (key.startsWith("Param: ") && !value.isEmpty()) {
                text.append(' ')
                        .append(key.substring("Param: ".length()))
                        .append('=')
                        .append(value);
            }
        });
        return text.toString();
    }

    private static String number(Rows.Row row, String field, String format) {
        return number(row, field, 1, format);
    }

    private static String number(Rows.Row row, String field, double factor, String format) {
        String text = row.textOr(field, "null");
        return text.equals("null") || text.equals("NaN")
                ? NONE
                : String.format(Locale.ROOT, format, factor * Double.parseDouble(text));
    }

    /// A table with a column an allocator; of several rows for one cell the last counts.
    private void table(
            String title, List<Rows.Row> rows, Function<Rows.Row, String> line, Function<Rows.Row, String> cell) {
        table(title, rows, line, row -> row.text("allocator"), cell);
    }

    private void table(
            String title,
            List<Rows.Row> rows,
            Function<Rows.Row, String> line,
            Function<Rows.Row, String> column,
            Function<Rows.Row, String> cell) {
        Set<String> columns = new LinkedHashSet<>();
        Map<String, Map<String, String>> lines = new LinkedHashMap<>();
        for (Rows.Row row : rows) {
            columns.add(column.apply(row));
            lines.computeIfAbsent(line.apply(row), _ -> new LinkedHashMap<>()).put(column.apply(row), cell.apply(row));
        }
        List<String> heads = new ArrayList<>(List.of(""));
        heads.addAll(columns);
        List<String[]> cells = new ArrayList<>();
        lines.forEach((name, own) -> {
            List<String> all = new ArrayList<>(List.of(name));
            columns.forEach(one -> all.add(own.getOrDefault(one, NONE)));
            cells.add(all.toArray(String[]::new));
        });
        print(title, heads, cells);
    }

    private void print(String title, List<String> heads, List<String[]> lines) {
        if (lines.isEmpty()) {
            return;
        }
        out.println("\n## " + title + "\n");
        out.println("| " + String.join(" | ", heads) + " |");
        out.println("|" + "---|".repeat(heads.size()));
        lines.forEach(line -> out.println("| " + String.join(" | ", line) + " |"));
    }
}
