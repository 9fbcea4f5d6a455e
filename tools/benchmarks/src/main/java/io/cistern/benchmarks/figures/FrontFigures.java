package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.Samples;
import java.util.List;

/// Makes the table of the first page: one number a cell, and the unfavourable beside the favourable.
final class FrontFigures {
    private static final String QUERIES = "queries.jsonl";
    private static final String ONNX = "onnx.txt";
    private static final String PAIRS = "pairs.jsonl";
    private static final double GIB = 1L << 30;
    private static final long SMALL = 64 << 10;
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
        figures.pair();
        figures.threads("Sixteen threads, each block a new size up to 256 KiB: µs a pair", "own");
        figures.threads("… blocks of 1 to 16 MiB: µs a pair", "large");
        figures.generated("Memory reserved per byte requested, 90 programs not used for tuning", "meanRatio");
        figures.generated("… at worst", "worstRatio");
        figures.firstPasses();
        figures.fills();
        return figures.table + "\n"
                + raw.source(QUERIES, ONNX, PAIRS, ThreadFigures.FILE, ReplayFigures.FILE, ReplayFigures.GENERATED)
                + ".\n";
    }

    private void queries(String what, String mode, String field, double factor) {
        List<Row> rows = Row.where(raw.json(QUERIES), "mode", mode, "query", "all");
        table.row(
                what,
                "`cudaMalloc`",
                median(Row.where(rows, "allocator", "direct"), field, factor),
                median(Row.where(rows, "allocator", "library"), field, factor),
                median(Row.where(rows, "allocator", "caching"), field, factor));
    }

    private static String median(List<Row> rows, String field, double factor) {
        return Table.rounded(
                new Samples(rows.stream().map(row -> row.number(field) * factor).toList()).median());
    }

    private void onnx(String what, String field) {
        List<Row> rows = OnnxFigures.served(raw);
        table.row(
                what,
                "its arenas",
                Table.median(Row.where(rows, "source", "arena"), field, "%,.0f"),
                Table.median(Row.where(rows, "source", "cuda_pool"), field, "%,.0f"),
                Table.median(Row.where(rows, "source", "cistern_request", "allocator", "caching"), field, "%,.0f"));
    }

    private void pair() {
        table.row(
                "An allocation and its free, up to 64 KiB: ns",
                TORCH,
                pair("torch"),
                pair("cudaMallocAsync"),
                pair("caching"));
    }

    private String pair(String allocator) {
        return ReplayFigures.range(
                Row.where(raw.json(PAIRS), "scenario", "pair", "allocator", allocator).stream()
                        .filter(row -> row.number("byteSize") <= SMALL)
                        .toList(),
                "nanosPerPair");
    }

    private void threads(String what, String load) {
        List<Row> rows = Row.where(raw.json(ThreadFigures.FILE), "load", load);
        table.row(what, TORCH, threads(rows, "torch"), threads(rows, "cudaMallocAsync"), threads(rows, "caching"));
    }

    private static String threads(List<Row> rows, String allocator) {
        return ThreadFigures.micros(Row.only(rows, "allocator", allocator));
    }

    private void generated(String what, String field) {
        List<Row> rows = Row.where(raw.json(ReplayFigures.GENERATED), "family", "all");
        table.row(
                what,
                "PyTorch's, modelled",
                ratio(rows, "pytorch-expandable", field),
                ratio(rows, "async", field),
                ratio(rows, "caching", field));
    }

    private static String ratio(List<Row> rows, String allocator, String field) {
        return Table.format("%.2f", Row.only(rows, "allocator", allocator).number(field));
    }

    private void firstPasses() {
        List<Row> rows = Row.where(raw.json(ReplayFigures.FILE), "work", ReplayFigures.NONE);
        table.row(
                "Ten PyTorch programs, first pass, mean: ms",
                TORCH,
                firstPass(rows, "torch"),
                firstPass(rows, "cudaMallocAsync"),
                firstPass(rows, "caching"));
    }

    private static String firstPass(List<Row> rows, String allocator) {
        return Table.rounded(
                ReplayFigures.mean(Row.where(rows, "allocator", allocator), ReplayFigures.FIRST_PASS_MILLIS));
    }

    private void fills() {
        List<Row> rows = Row.where(raw.json(ReplayFigures.FILE), "work", ReplayFigures.FILLS, "trace", "vit_streams");
        table.row(
                "ViT on five streams, each block filled: ms a pass",
                TORCH,
                fills(rows, "torch"),
                fills(rows, "cudaMallocAsync"),
                fills(rows, "caching"));
    }

    private static String fills(List<Row> rows, String allocator) {
        return ReplayFigures.range(Row.where(rows, "allocator", allocator), ReplayFigures.PASS_MILLIS);
    }
}
