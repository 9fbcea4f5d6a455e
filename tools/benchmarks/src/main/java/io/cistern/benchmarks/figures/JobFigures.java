package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.Samples;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/// Makes the table and the chart of real PyTorch jobs with each allocator inside their process.
final class JobFigures {
    private static final String FILE = "jobs.jsonl";
    private static final String LARGEST_BATCH = "largest-batch.jsonl";
    private static final List<String> ALLOCATORS = List.of("default", "expandable", "async", "cistern");

    private JobFigures() {}

    static String jobs(RawOutput raw) {
        Table table = new Table("", "PyTorch 2.11", "PyTorch, expandable", "`cudaMallocAsync`", "Cistern, `caching`");
        List<Row> rows = done(raw);
        Names.PROGRAMS.forEach((job, name) -> {
            List<String> cells = new ArrayList<>(List.of(name));
            ALLOCATORS.forEach(each -> cells.add(cell(Row.where(rows, "job", job, "conf", each))));
            table.row(cells);
        });
        addLargestBatches(table, raw);
        long runs = rows.stream().map(row -> row.textOr("run", "1")).distinct().count();
        long fewest = rows.stream()
                .collect(Collectors.groupingBy(row -> row.text("job") + row.text("conf"), Collectors.counting()))
                .values()
                .stream()
                .min(Long::compare)
                .orElseThrow();
        String several = ": medians of " + (fewest < runs ? fewest + " to " : "") + runs
                + " alternating runs, ± half of their range";
        return table + "\nTime and peak of device memory in the third pass" + (runs == 1 ? "" : several)
                + ". " + raw.source(FILE)
                + ".\nThe last rows give the largest batch that fits a device of that size; more is better. "
                + raw.source(LARGEST_BATCH) + ".\n";
    }

    private static List<Row> done(RawOutput raw) {
        return raw.json(FILE).stream().filter(row -> row.has("passSeconds")).toList();
    }

    private static String cell(List<Row> done) {
        if (done.isEmpty()) {
            return "";
        }
        Samples seconds = thirdPasses(done, "passSeconds");
        String spread = done.size() == 1 ? "" : Table.format(" ± %.2f", (seconds.most() - seconds.least()) / 2);
        return Table.format(
                "%.2f%s · %,.0f",
                seconds.median(), spread, thirdPasses(done, "devicePeakMiB").median());
    }

    /// Returns the last figures of lists such as "[1.2, 1.1, 1.0]".
    private static Samples thirdPasses(List<Row> done, String field) {
        return new Samples(done.stream()
                .map(row -> row.text(field))
                .map(list -> Double.parseDouble(list.substring(list.lastIndexOf(' ') + 1, list.length() - 1)))
                .toList());
    }

    /// Adds a row for each size of the device; all runs found the same.
    private static void addLargestBatches(Table table, RawOutput raw) {
        List<Row> rows = raw.json(LARGEST_BATCH);
        for (int gigabytes : new int[] {8, 16, 32}) {
            List<String> cells = new ArrayList<>(List.of("GPT-2's largest batch in " + gigabytes + " GB"));
            ALLOCATORS.forEach(each -> cells.add(Row.where(rows, "conf", each).stream()
                    .filter(row -> row.number("gigabytes") == gigabytes)
                    .map(row -> row.text("batch"))
                    .distinct()
                    .collect(Collectors.joining(", "))));
            table.row(cells);
        }
    }

    /// Draws the peak of device memory in the third pass. The first bar of each job is Cistern's.
    static String chart(RawOutput raw) {
        List<Row> rows = done(raw);
        BarChart chart = new BarChart(
                "Device memory of ten PyTorch jobs, MiB, H200",
                List.of("Cistern, caching", "cudaMallocAsync", "PyTorch, expandable", "PyTorch 2.11"),
                Names.PROGRAMS.size());
        Names.PROGRAMS.forEach((job, name) -> chart.group(
                name,
                ALLOCATORS.reversed().stream()
                        .map(each -> Row.where(rows, "job", job, "conf", each))
                        .map(own -> own.isEmpty()
                                ? 0.0
                                : thirdPasses(own, "devicePeakMiB").median())
                        .toList(),
                "%,.0f"));
        return chart.toString();
    }
}
