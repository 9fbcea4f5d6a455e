package io.cistern.benchmarks.thresholds;

import de.siegmar.fastcsv.reader.CsvReader;
import de.siegmar.fastcsv.reader.CsvRecord;
import io.cistern.benchmarks.thresholds.StudiedProgram.Block;
import java.io.IOException;
import java.io.InputStream;
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

    private record Live(Block block, long stream) {}

    private final List<CsvRecord> rows;

    private RecordedTrace(List<CsvRecord> rows) {
        this.rows = rows;
    }

    /// @param file CSV with a header that begins with `op,id,bytes,stream`, perhaps gzipped
    static Workload read(Path file) throws IOException {
        String fileName = Objects.requireNonNull(file.getFileName()).toString();
        try (InputStream in = Files.newInputStream(file);
                InputStream plain = fileName.endsWith(".gz") ? new GZIPInputStream(in) : in;
                CsvReader<CsvRecord> records = CsvReader.builder().ofCsvRecord(plain)) {
            RecordedTrace trace = new RecordedTrace(records.stream().skip(1).toList());
            String name = fileName.substring(0, fileName.indexOf('.'));
            return new Workload(name, "trace", Workload.H200_BYTES, trace::run);
        }
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
    private static void run(CsvRecord row, StudiedProgram program, Map<String, Long> streams, Map<Long, Live> live) {
        char op = row.getField(0).charAt(0);
        long id = Long.parseLong(row.getField(1));
        long byteSize = Long.parseLong(row.getField(2));
        if (op == 'a' && byteSize > 0) {
            long stream = streams.computeIfAbsent(row.getField(3), _ -> program.newStream());
            live.put(id, new Live(program.allocate(byteSize, stream), stream));
            program.kernel(KERNEL_NANOS + byteSize / KERNEL_BYTES_PER_NANO, stream);
        } else if (op == 'f') {
            Live freed = live.remove(id);
            if (freed != null) {
                program.free(freed.block(), freed.stream());
            }
        } else if (op == 'e') {
            program.end(Objects.requireNonNull(streams.remove(row.getField(3))));
        }
    }
}
