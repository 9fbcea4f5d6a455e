package io.cistern.benchmarks.thresholds;

import io.cistern.benchmarks.thresholds.StudiedProgram.Block;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.zip.GZIPInputStream;

/// A trace, three times over. Each block allocated is used by a kernel of 5 µs on its stream, and after each thousand
/// rows all streams are awaited; a trace does not say where its program did.
final class RecordedTrace {
    private static final int PASSES = 3;
    private static final int ROWS_BETWEEN_WAITS = 1000;
    private static final long KERNEL_NANOS = 5_000;

    private record Row(boolean allocates, long id, long byteSize, String stream) {}

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
                    lines.lines().skip(1).map(RecordedTrace::row).filter(Objects::nonNull).toList());
            String name = fileName.substring(0, fileName.indexOf('.'));
            return new Workload(name, "trace", Workload.H200_BYTES, trace::run);
        }
    }

    private static Row row(String line) {
        String[] cells = line.split(",", -1);
        boolean allocates = cells[0].equals("a");
        return allocates || cells[0].equals("f")
                ? new Row(allocates, Long.parseLong(cells[1]), Long.parseLong(cells[2]), cells[3])
                : null;
    }

    private void run(StudiedGpu gpu) {
        StudiedProgram program = gpu.program();
        Map<String, Long> streams = new LinkedHashMap<>();
        for (int pass = 0; pass < PASSES; pass++) {
            Map<Long, Block> live = new HashMap<>();
            Map<Long, Long> streamOf = new HashMap<>();
            for (int i = 0; i < rows.size(); i++) {
                Row row = rows.get(i);
                if (row.byteSize() == 0 && row.allocates()) {
                    continue;
                }
                if (row.allocates()) {
                    long stream = streams.computeIfAbsent(row.stream(), _ -> program.newStream());
                    live.put(row.id(), program.allocate(row.byteSize(), stream));
                    streamOf.put(row.id(), stream);
                    program.kernel(KERNEL_NANOS, stream);
                } else if (live.containsKey(row.id())) {
                    program.free(live.remove(row.id()), streamOf.remove(row.id()));
                }
                if (i % ROWS_BETWEEN_WAITS == 0) {
                    streams.values().forEach(program::synchronize);
                }
            }
            new ArrayList<>(live.keySet()).forEach(id -> program.free(live.remove(id), streamOf.get(id)));
            streams.values().forEach(program::synchronize);
        }
    }
}
