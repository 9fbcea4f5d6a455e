package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/// Makes tables of replays of ten recorded programs beside peers, from one run.
final class ReplayFigures {
    private static final String FILE = "replays.jsonl";
    private static final Map<String, String> TRACES = new LinkedHashMap<>();
    private static final List<String> ALLOCATORS =
            List.of("caching", "async", "torch", "torch:expandable_segments:True", "cudaMallocAsync");

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
        return table(raw, "none", row -> row.number("nanosPerOperation"), "host ns")
                + "\nNanoseconds of the host for an allocation or a free, and memory reserved over memory requested at the peak."
                + tight(raw);
    }

    static String withFills(RawOutput raw) {
        return table(raw, "memset", row -> row.number("wallMillis"), "ms a pass")
                + "\nThe same with GPU work: each block is filled on its stream. Milliseconds until the GPU has done a pass, and the"
                + "\nsame ratio. On several streams PyTorch is faster, with about twice to four times the memory: each stream keeps its own there. On five"
                + "\nstreams `caching` takes more memory than without work, since it rather takes some than waits for another stream;"
                + "\n`reuse=wait` takes " + Table.rounded(waiting(raw).number("wallMillis")) + " ms · "
                + Table.format("%.3f", waiting(raw).number("ratio")) + ". " + raw.source(FILE) + ".\n";
    }

    private static Rows.Row waiting(RawOutput raw) {
        return Select.only(rows(raw), "trace", "vit_streams", "allocator", "caching:reuse=wait", "work", "memset");
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

    private static String table(RawOutput raw, String work, ToDoubleFunction<Rows.Row> time, String unit) {
        List<String> header = new ArrayList<>(List.of(unit + " · ratio"));
        ALLOCATORS.forEach(allocator -> header.add(Peers.name(allocator)));
        Table table = new Table(header);
        List<Rows.Row> rows = rows(raw);
        TRACES.forEach((trace, name) -> {
            List<String> cells = new ArrayList<>(List.of(name));
            ALLOCATORS.forEach(allocator -> {
                Rows.Row row = Select.only(rows, "trace", trace, "allocator", allocator, "work", work);
                cells.add(Table.rounded(time.applyAsDouble(row)) + " · " + Table.format("%.3f", row.number("ratio")));
            });
            table.row(cells);
        });
        List<String> means = new ArrayList<>(List.of("geometric mean"));
        ALLOCATORS.forEach(allocator -> {
            List<Rows.Row> own = Select.where(rows, "allocator", allocator, "work", work);
            means.add(Table.rounded(mean(own, time)) + " · "
                    + Table.format("%.3f", mean(own, row -> row.number("ratio"))));
        });
        table.row(means);
        return table.toString();
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
