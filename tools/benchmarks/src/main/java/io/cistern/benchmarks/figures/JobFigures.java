package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/// Makes tables of real PyTorch jobs with each allocator inside their process.
final class JobFigures {
    private static final String FILE = "jobs.jsonl";
    private static final String PROGRAMS = "replays.jsonl";
    private static final String EXPANDABLE = "torch:expandable_segments:True";
    private static final Map<String, String> JOBS = new LinkedHashMap<>();
    private static final List<String> ALLOCATORS = List.of("default", "expandable", "async", "cistern");

    static {
        JOBS.put("gpt2_train", "GPT-2 training");
        JOBS.put("resnet_train", "ResNet-50 training");
        JOBS.put("unet_train", "U-Net training");
        JOBS.put("llama_generate", "Llama generation");
        JOBS.put("vit_streams", "ViT on five streams");
        JOBS.put("bert_streams", "BERT on four streams");
        JOBS.put("gnn_sample", "GCN on sampled graphs");
        JOBS.put("lora_finetune", "LoRA fine-tuning");
        JOBS.put("speech_train", "Speech training");
        JOBS.put("kv_serving", "Serving with key-value caches");
    }

    private JobFigures() {}

    static String jobs(RawOutput raw) {
        Table table = new Table(
                List.of("", "PyTorch 2.11", "PyTorch, expandable", "`cudaMallocAsync`", "Cistern, `caching`"));
        List<Rows.Row> rows = raw.json(FILE);
        JOBS.forEach((job, name) -> {
            List<String> cells = new ArrayList<>(List.of(name));
            ALLOCATORS.forEach(each -> cells.add(cell(Select.where(rows, "job", job, "conf", each))));
            table.row(cells);
        });
        MemoryFigures.addLargestBatches(table, raw, ALLOCATORS);
        long runs = rows.stream().map(row -> row.textOr("run", "1")).distinct().count();
        long fewest = rows.stream()
                .filter(row -> row.has("passSeconds"))
                .collect(Collectors.groupingBy(row -> row.text("job") + row.text("conf"), Collectors.counting()))
                .values()
                .stream()
                .min(Long::compare)
                .orElseThrow();
        return table + "\nSeconds of the third pass, and the most MiB of the device that were taken in it"
                + (runs == 1
                        ? ""
                        : ": medians of " + (fewest < runs ? fewest + " to " : "") + runs
                                + " runs in turns, ± half of their range")
                + ". "
                + raw.source(FILE)
                + ".\nThe last rows: the largest batch on a device of that size, where more is better. "
                + raw.source(MemoryFigures.LARGEST_BATCH) + ".\n";
    }

    private static String cell(List<Rows.Row> rows) {
        List<Rows.Row> done =
                rows.stream().filter(row -> row.has("passSeconds")).toList();
        if (done.isEmpty()) {
            return "";
        }
        double[] seconds = sorted(done, "passSeconds");
        String spread =
                seconds.length == 1 ? "" : Table.format(" ± %.2f", (seconds[seconds.length - 1] - seconds[0]) / 2);
        return Table.format("%.2f%s · %,.0f", median(seconds), spread, median(sorted(done, "devicePeakMiB")));
    }

    /// Returns what the third passes have, the least first.
    private static double[] sorted(List<Rows.Row> rows, String field) {
        return rows.stream().mapToDouble(row -> last(row.text(field))).sorted().toArray();
    }

    private static double median(double[] sorted) {
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    private static double last(String numbers) {
        return Double.parseDouble(numbers.substring(numbers.lastIndexOf(' ') + 1, numbers.length() - 1));
    }

    /// Draws the peak of device memory in the third pass. The first bar of each job is Cistern's.
    static String chart(RawOutput raw) {
        List<Rows.Row> rows = raw.json(FILE);
        BarChart chart = new BarChart(
                "Device memory of ten PyTorch jobs, MiB, H200",
                List.of("Cistern, caching", "cudaMallocAsync", "PyTorch, expandable", "PyTorch 2.11"),
                JOBS.size());
        JOBS.forEach((job, name) -> chart.group(
                name,
                ALLOCATORS.reversed().stream()
                        .map(each -> peak(Select.where(rows, "job", job, "conf", each)))
                        .toList(),
                "%,.0f"));
        return chart.toString();
    }

    /// @return the median peak in MiB, or 0 if the job was not run with the allocator
    private static double peak(List<Rows.Row> rows) {
        List<Rows.Row> done =
                rows.stream().filter(row -> row.has("passSeconds")).toList();
        return done.isEmpty() ? 0 : median(sorted(done, "devicePeakMiB"));
    }

    /// Describes the bytes that ten recorded programs reserve, replayed without work on their blocks.
    static String reserved(RawOutput raw) {
        return Table.format(
                "Over ten recorded programs, five of which it was not made for, `caching` reserves %.3f times the bytes%n"
                        + "requested on average (geometric mean), %.3f at worst; PyTorch's expandable segments %.3f and %.3f. %s.%n",
                mean(ratios(raw, "caching")),
                worst(ratios(raw, "caching")),
                mean(ratios(raw, EXPANDABLE)),
                worst(ratios(raw, EXPANDABLE)),
                raw.source(PROGRAMS));
    }

    private static double[] ratios(RawOutput raw, String allocator) {
        return Select.where(raw.json(PROGRAMS), "allocator", allocator, "work", "none").stream()
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
}
