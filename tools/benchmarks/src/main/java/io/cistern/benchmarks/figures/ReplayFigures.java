package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.ToDoubleFunction;

/// Makes tables of replays of ten recorded programs beside peers, from one run.
final class ReplayFigures {
    private static final String FILE = "replays.jsonl";
    private static final Map<String, String> TRACES = new LinkedHashMap<>();
    private static final List<String> PEERS = List.of("torch", "torch:expandable_segments:True", "cudaMallocAsync");
    private static final String LONG = "long-replays.jsonl";
    private static final String WAITING = "caching:reuse=wait";

    static {
        TRACES.put("gpt2_train", "GPT-2 training");
        TRACES.put("resnet_train", "ResNet-50 training");
        TRACES.put("llama_generate", "Llama generation");
        TRACES.put("gnn_sample", "GCN on sampled graphs");
        TRACES.put("lora_finetune", "LoRA fine-tuning");
        TRACES.put("kv_serving", "Serving with growing caches");
        TRACES.put("speech_train", "Speech training");
        TRACES.put("unet_train", "U-Net training");
        TRACES.put("bert_streams", "BERT on four streams");
        TRACES.put("vit_streams", "ViT on five streams");
    }

    private ReplayFigures() {}

    static String hostTime(RawOutput raw) {
        return table(raw, "async", "none", row -> row.number("nanosPerOperation"), "host ns")
                + "\nNanoseconds of the host for an allocation or a free, and memory reserved over memory requested at the peak."
                + tight(raw);
    }

    static String withFills(RawOutput raw) {
        return table(raw, WAITING, "memset", row -> row.number("wallMillis"), "ms a pass")
                + "\nThe same with GPU work: each block is filled on its stream. Milliseconds until the GPU has done a pass, and the"
                + "\nsame ratio. On several streams `caching` takes more memory than without work, since it rather takes some than"
                + "\nwaits for another stream; `reuse=wait` waits. " + raw.source(FILE) + ".\n";
    }

    /// Makes the table of the programs of several streams, played for longer.
    static String longer(RawOutput raw) {
        List<String> allocators = List.of("caching", WAITING, "caching:reuse=never", PEERS.get(0), PEERS.get(1));
        Table table = new Table(header("ms a pass", allocators));
        for (String trace : List.of("bert_streams", "vit_streams")) {
            table.row(cells(raw.json(LONG), trace, allocators, "memset", row -> row.number("wallMillis")));
        }
        return table + "\nMedians of 60 passes. " + raw.source(LONG) + ".\n";
    }

    private static String tight(RawOutput raw) {
        List<Rows.Row> rows = Select.where(rows(raw), "allocator", "caching:fit=tight", "work", "none");
        double mean = mean(rows, row -> row.number("ratio"));
        double worst =
                rows.stream().mapToDouble(row -> row.number("ratio")).max().orElseThrow();
        return Table.format(
                "\n`caching:fit=tight` reserves %.3f on average (geometric mean), %.3f at worst. %s.\n",
                mean, worst, raw.source(FILE));
    }

    private static String table(
            RawOutput raw, String second, String work, ToDoubleFunction<Rows.Row> time, String unit) {
        List<String> allocators = new ArrayList<>(List.of("caching", second));
        allocators.addAll(PEERS);
        Table table = new Table(header(unit, allocators));
        List<Rows.Row> rows = rows(raw);
        TRACES.keySet().forEach(trace -> table.row(cells(rows, trace, allocators, work, time)));
        List<String> means = new ArrayList<>(List.of("geometric mean"));
        allocators.forEach(allocator -> {
            List<Rows.Row> own = Select.where(rows, "allocator", allocator, "work", work);
            means.add(Table.rounded(mean(own, time)) + " · "
                    + Table.format("%.3f", mean(own, row -> row.number("ratio"))));
        });
        table.row(means);
        return table.toString();
    }

    private static List<String> header(String unit, List<String> allocators) {
        List<String> header = new ArrayList<>(List.of(unit + " · ratio"));
        allocators.forEach(allocator -> header.add(Peers.name(allocator)));
        return header;
    }

    private static List<String> cells(
            List<Rows.Row> rows, String trace, List<String> allocators, String work, ToDoubleFunction<Rows.Row> time) {
        List<String> cells = new ArrayList<>(List.of(Objects.requireNonNull(TRACES.get(trace))));
        allocators.forEach(allocator -> {
            Rows.Row row = Select.only(rows, "trace", trace, "allocator", allocator, "work", work);
            cells.add(Table.rounded(time.applyAsDouble(row)) + " · " + Table.format("%.3f", row.number("ratio")));
        });
        return cells;
    }

    private static double mean(List<Rows.Row> rows, ToDoubleFunction<Rows.Row> value) {
        return Math.exp(rows.stream()
                .mapToDouble(row -> Math.log(value.applyAsDouble(row)))
                .average()
                .orElseThrow());
    }

    private static List<Rows.Row> rows(RawOutput raw) {
        return raw.json(FILE);
    }
}
