package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.charts.Rows;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// What real PyTorch jobs take with each allocator inside their process.
final class JobFigures {
    /// Later runs come later: their rows stand instead of those of the same job.
    private static final List<String> RUNS = List.of("2026-11-24-h100-growth", "2026-11-25-h100");

    private static final String FILE = "jobs.jsonl";
    private static final Map<String, String> JOBS = new LinkedHashMap<>();
    private static final List<String> ALLOCATORS = List.of("default", "expandable", "async", "cistern");

    static {
        JOBS.put("gpt2_train", "GPT-2 training");
        JOBS.put("resnet_train", "ResNet-50 training");
        JOBS.put("unet_train", "U-Net training");
        JOBS.put("llama_generate", "Llama generation");
        JOBS.put("vit_streams", "ViT on five streams");
        JOBS.put("bert_streams", "BERT on four streams");
    }

    private JobFigures() {}

    static String jobs(RawOutput raw) {
        Table table = new Table(
                List.of("", "PyTorch 2.11", "PyTorch, expandable", "`cudaMallocAsync`", "Cistern, `caching`"));
        for (Map.Entry<String, String> job : JOBS.entrySet()) {
            List<Rows.Row> rows = rows(raw, job.getKey());
            List<String> cells = new ArrayList<>(List.of(job.getValue()));
            ALLOCATORS.forEach(each -> cells.add(cell(Select.where(rows, "conf", each))));
            table.row(cells);
        }
        return table + "\nSeconds of the third pass, and the most MiB of the device that were taken in it. "
                + sources(raw, FILE) + ".\n";
    }

    /// Those of the last run that has the job, of the default settings alone.
    private static List<Rows.Row> rows(RawOutput raw, String job) {
        return RUNS.reversed().stream()
                .map(run -> Select.where(raw.json(run, FILE), "job", job).stream()
                        .filter(row -> List.of("", "caching").contains(row.textOr("spec", "")))
                        .toList())
                .filter(rows -> !rows.isEmpty())
                .findFirst()
                .orElseThrow();
    }

    private static String cell(List<Rows.Row> rows) {
        return rows.isEmpty()
                ? ""
                : Table.format(
                        "%.2f · %,.0f",
                        last(rows.getFirst().text("passSeconds")),
                        last(rows.getFirst().text("devicePeakMiB")));
    }

    private static double last(String numbers) {
        return Double.parseDouble(numbers.substring(numbers.lastIndexOf(' ') + 1, numbers.length() - 1));
    }

    /// What ten recorded programs reserve, without work.
    static String reserved(RawOutput raw) {
        return Table.format(
                "Over ten recorded programs, five of which it was not made for, `caching` reserves %.3f times the bytes%n"
                        + "requested on average (geometric mean), %.3f at worst; PyTorch's expandable segments %.3f and %.3f. %s.%n",
                mean(ratios(raw, 1, "allocator", "caching")),
                worst(ratios(raw, 1, "allocator", "caching")),
                mean(ratios(raw, 0, "version", "torch expandable_segments:True")),
                worst(ratios(raw, 0, "version", "torch expandable_segments:True")),
                sources(raw, "replays.jsonl"));
    }

    private static double[] ratios(RawOutput raw, int run, String field, String value) {
        return Select.where(raw.json(RUNS.get(run), "replays.jsonl"), field, value, "work", "none").stream()
                .mapToDouble(row -> row.number("ratio"))
                .toArray();
    }

    private static double mean(double[] values) {
        double logs = 0;
        for (double value : values) {
            logs += Math.log(value);
        }
        return Math.exp(logs / values.length);
    }

    private static double worst(double[] values) {
        double worst = 0;
        for (double value : values) {
            worst = Math.max(worst, value);
        }
        return worst;
    }

    private static String sources(RawOutput raw, String file) {
        return String.join(
                "; ",
                Stream.of(0, 1).map(run -> raw.source(RUNS.get(run), file)).toList());
    }
}
