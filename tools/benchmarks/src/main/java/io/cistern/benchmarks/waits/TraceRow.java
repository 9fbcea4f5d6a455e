package io.cistern.benchmarks.waits;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.zip.GZIPInputStream;

/// A block that is allocated, or freed on its own stream. Rows that order streams are passed over.
///
/// @param allocates whether it is allocated
/// @param id what the trace calls it
/// @param byteSize of the block
/// @param stream the number of its stream, from 0
record TraceRow(boolean allocates, long id, long byteSize, int stream) {
    /// @param file CSV with a header that begins with `op,id,bytes,stream`, perhaps gzipped
    static List<TraceRow> read(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file);
                InputStream plain = file.toString().endsWith(".gz") ? new GZIPInputStream(in) : in;
                BufferedReader lines = new BufferedReader(new InputStreamReader(plain, StandardCharsets.US_ASCII))) {
            return rows(lines.lines().skip(1).toList());
        }
    }

    private static List<TraceRow> rows(List<String> lines) {
        Map<String, Integer> streams = new HashMap<>();
        Map<String, TraceRow> live = new HashMap<>();
        List<TraceRow> rows = new ArrayList<>();
        for (String line : lines) {
            String[] cells = line.split(",", -1);
            if (cells[0].equals("a")) {
                int stream = streams.computeIfAbsent(cells[3], _ -> streams.size());
                TraceRow row = new TraceRow(true, Long.parseLong(cells[1]), Long.parseLong(cells[2]), stream);
                live.put(cells[1], row);
                rows.add(row);
            } else if (cells[0].equals("f")) {
                TraceRow freed = Objects.requireNonNull(live.remove(cells[1]));
                rows.add(new TraceRow(false, freed.id(), freed.byteSize(), freed.stream()));
            }
        }
        return rows;
    }
}
