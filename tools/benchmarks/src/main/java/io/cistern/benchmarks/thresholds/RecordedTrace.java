package io.cistern.benchmarks.thresholds;

import io.cistern.benchmarks.thresholds.StudiedProgram.Block;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.zip.GZIPInputStream;

/// Replays a trace three times with assumed work, because a trace records none: a kernel uses each allocated
/// block on its stream, for [#KERNEL_NANOS] and its bytes at [#KERNEL_BYTES_PER_NANO]. After each thousand rows,
/// the program waits for all streams.
final class RecordedTrace {
    private static final int PASSES = 3;
    private static final int ROWS_BETWEEN_WAITS = 1000;
    private static final long KERNEL_NANOS = 5_000;
    private static final long KERNEL_BYTES_PER_NANO = 400;

    private record Row(char op, long id, long byteSize, String stream) {}

    private record Live(Block block, long stream) {}

    private final List<Row> rows;

    private RecordedTrace(List<Row> rows) {
        this.rows = rows;
    }

    /// @param file CSV with a header that begins with `op,id,bytes,stream`, perhaps gzipped
    static Workload read(Path file) throws IOException {
        String fileName = Objects.requireNonNull(file.getFileName()).toString();
        try (InputStream in = Files.newInputStream(file);
                InputStream plain = fileName.endsWith(".gz") ? new GZIPInputStream(in) : in;
                BufferedReader lines = new BufferedReader(new InputStreamReader(plain, StandardCharsets.US_ASCII))) {
            RecordedTrace trace = new RecordedTrace(
                    lines.lines().skip(1).map(RecordedTrace::row).toList());
            String name = fileName.substring(0, fileName.indexOf('.'));
            return new Workload(name, "trace", Workload.H200_BYTES, trace::run);
        }
    }

    private static Row row(String line) {
        String[] cells = line.split(",", -1);
        return new Row(cells[0].charAt(0), Long.parseLong(cells[1]), Long.parseLong(cells[2]), cells[3]);
    }

    private void run(StudiedGpu gpu) {
        StudiedProgram program = gpu.program();
        Map<String, Long> streams = new LinkedHashMap<>();
        for (int pass = 0; pass < PASSES; pass++) {
            Map<Long, Live> live = new LinkedHashMap<>();
            for (int i = 0; i < rows.size(); i++) {
                run(rows.get(i), program, streams, live);
                if (i % ROWS_BETWEEN_WAITS == 0) {
                    streams.values().forEach(program::synchronize);
                }
            }
            live.values().forEach(left -> program.free(left.block(), left.stream()));
            streams.values().forEach(program::synchronize);
        }
    }

    /// Ignores rows that order streams, because each kernel here runs on its block's own stream.
    private static void run(Row row, StudiedProgram program, Map<String, Long> streams, Map<Long, Live> live) {
        if (row.op() == 'a' && row.byteSize() > 0) {
            long stream = streams.computeIfAbsent(row.stream(), _ -> program.newStream());
            live.put(row.id(), new Live(program.allocate(row.byteSize(), stream), stream));
            program.kernel(KERNEL_NANOS + row.byteSize() / KERNEL_BYTES_PER_NANO, stream);
        } else if (row.op() == 'f') {
            Live freed = live.remove(row.id());
            if (freed != null) {
                program.free(freed.block(), freed.stream());
            }
        } else if (row.op() == 'e') {
            program.end(Objects.requireNonNull(streams.remove(row.stream())));
        }
    }
}
