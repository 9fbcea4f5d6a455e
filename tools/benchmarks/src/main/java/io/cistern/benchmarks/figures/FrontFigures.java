package io.cistern.benchmarks.figures;

import java.util.List;
import java.util.function.Function;

/// Makes the table of the first page: one number a cell, and the unfavourable beside the favourable.
final class FrontFigures {
    private static final String QUERIES = "queries.jsonl";
    private static final String ONNX = "onnx.txt";
    private static final double GIB = 1L << 30;
    private static final String TORCH = "PyTorch's";

    private final Table table = new Table("", "compared with", "its result", "the driver's pool", "Cistern");
    private final RawOutput raw;

    private FrontFigures(RawOutput raw) {
        this.raw = raw;
    }

    static String jobs(RawOutput raw) {
        FrontFigures figures = new FrontFigures(raw);
        figures.queries("Ten SQL queries, one thread: ms", "one", "seconds", 1e3);
        figures.queries("Ten SQL queries on each of eight threads: seconds", "eight", "seconds", 1);
        figures.queries("… device memory, GiB", "eight", "mostBytes", 1 / GIB);
        figures.queries("… with half the memory they ask for: seconds", "short", "seconds", 1);
        figures.onnx("ONNX Runtime, two models: requests a second", "perSecond");
        figures.onnx("… device memory, MiB", "mostMib");
        figures.pairs("An allocation and its free, up to 64 KiB: ns");
        figures.threads("Sixteen threads, each block a new size up to 256 KiB: µs a pair", "own");
        figures.threads("… blocks of 1 to 16 MiB: µs a pair", "large");
        figures.generated("Memory reserved per byte requested, 90 programs not used for tuning", "meanRatio");
        figures.generated("… at worst", "worstRatio");
        figures.firstPasses("Ten PyTorch programs, first pass, mean: ms");
        figures.fills("ViT on five streams, each block filled: ms a pass");
        return figures.table.with(
                "",
                raw,
                QUERIES,
                ONNX,
                PairFigures.FILE,
                PairFigures.THREADS,
                ReplayFigures.FILE,
                ReplayFigures.GENERATED);
    }

    /// @param cell the cell of an allocator by its name in the raw output
    /// @param names the peer, the driver's pool and Cistern
    private void row(String what, String peer, Function<String, String> cell, String... names) {
        table.row(what, peer, cell.apply(names[0]), cell.apply(names[1]), cell.apply(names[2]));
    }

    private void againstTorch(String what, List<Row> rows, Function<List<Row>, String> cell) {
        row(what, TORCH, name -> cell.apply(Row.where(rows, "allocator", name)), "torch", "cudaMallocAsync", "caching");
    }

    private void queries(String what, String mode, String field, double factor) {
        List<Row> rows = Row.where(raw.json(QUERIES), "mode", mode, "query", "all");
        row(
                what,
                "`cudaMalloc`",
                name -> Table.rounded(Row.samples(Row.where(rows, "allocator", name), field)
                        .times(factor)
                        .median()),
                "direct",
                "library",
                "caching");
    }

    private void onnx(String what, String field) {
        List<Row> rows = OnnxFigures.served(raw).stream()
                .filter(row -> !row.text("allocator").contains(":")) // the usual options
                .toList();
        row(
                what,
                "its arenas",
                name -> Table.format(
                        "%,.0f",
                        Row.samples(Row.where(rows, "source", name), field).median()),
                "arena",
                "cuda_pool",
                "cistern_request");
    }

    private void pairs(String what) {
        List<Row> rows = PairFigures.small(Row.where(raw.json(PairFigures.FILE), "scenario", "pair"));
        againstTorch(what, rows, own -> Table.range(own, "nanosPerPair"));
    }

    private void threads(String what, String load) {
        List<Row> rows = Row.where(raw.json(PairFigures.THREADS), "load", load);
        againstTorch(what, rows, own -> PairFigures.micros(Row.only(own)));
    }

    private void generated(String what, String field) {
        List<Row> rows = Row.where(raw.json(ReplayFigures.GENERATED), "family", "all");
        row(
                what,
                "PyTorch's, modelled",
                name -> Table.format("%.2f", Row.only(rows, "allocator", name).number(field)),
                "pytorch-expandable",
                "async",
                "caching");
    }

    private void firstPasses(String what) {
        List<Row> rows = Row.where(raw.json(ReplayFigures.FILE), "work", ReplayFigures.NONE);
        againstTorch(what, rows, own -> Table.rounded(ReplayFigures.mean(own, ReplayFigures.FIRST_PASS_MILLIS)));
    }

    private void fills(String what) {
        List<Row> rows = Row.where(raw.json(ReplayFigures.FILE), "work", ReplayFigures.FILLS, "trace", "vit_streams");
        againstTorch(what, rows, own -> Table.range(own, ReplayFigures.PASS_MILLIS));
    }
}
