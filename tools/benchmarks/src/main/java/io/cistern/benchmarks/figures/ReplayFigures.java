package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/// Makes tables of replays of the five recorded programs beside peers, from one run.
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
                + "\nsame ratio. On five streams `caching` took longest then: it handed memory from stream to stream, and work waited for"
                + "\nthat, as with `reuse=wait` today; `caching:reuse=never` does not ("
                + Table.rounded(never(raw).number("wallMillis")) + " ms · "
                + Table.format("%.3f", never(raw).number("ratio")) + "). " + raw.source(FILE) + ".\n";
    }

    private static Rows.Row never(RawOutput raw) {
        return Select.only(rows(raw), "trace", "vit_streams", "allocator", "caching:reuse=never", "work", "memset");
    }

    private static String tight(RawOutput raw) {
        List<Rows.Row> rows = Select.where(rows(raw), "allocator", "caching:fit=tight", "work", "none");
        double mean = Math.exp(rows.stream()
                .mapToDouble(row -> Math.log(row.number("ratio")))
                .average()
                .orElseThrow());
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
        return table.toString();
    }

    private static List<Rows.Row> rows(RawOutput raw) {
        return raw.json(FILE);
    }
}
