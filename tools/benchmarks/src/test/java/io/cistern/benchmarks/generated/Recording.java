package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// The rows of a generated trace, and what can be told of its blocks.
final class Recording {
    /// A block.
    ///
    /// @param from the row that allocates it
    /// @param to the row that frees it
    record Life(long byteSize, long stream, int from, int to) {
        int length() {
            return to - from;
        }
    }

    private record Begin(long byteSize, long stream, int row) {}

    private final Map<Long, Begin> live = new HashMap<>();
    private final List<Life> lives = new ArrayList<>();
    private final List<String> rows = new ArrayList<>();
    private final Set<Long> usedElsewhere = new HashSet<>();
    private long liveBytes;
    private long peakBytes;

    static Recording of(GeneratedTrace trace, long seed, long capacityBytes) {
        return of(trace.csv(seed, capacityBytes));
    }

    /// @param csv a trace of format 2
    static Recording of(String csv) {
        Recording recording = new Recording();
        csv.lines().skip(1).forEach(row -> recording.add(row.split(",")));
        return recording;
    }

    private void add(String... fields) {
        String op = fields[0];
        Long id = Long.valueOf(fields[1]);
        String byteSize = op.equals("a") ? " " + fields[2] : "";
        String stream = fields[3];
        switch (op) {
            case "a" -> allocate(id, Long.parseLong(fields[2]), Long.parseLong(stream));
            case "f" -> free(id);
            case "u" -> usedElsewhere.add(id);
            default -> {}
        }
        rows.add(op.equals("w") ? "w" + stream + " " + id : op + id + byteSize + " " + stream);
    }

    private void allocate(Long id, long byteSize, long stream) {
        live.put(id, new Begin(byteSize, stream, rows.size()));
        liveBytes += byteSize;
        peakBytes = Math.max(peakBytes, liveBytes);
    }

    private void free(Long id) {
        Begin begin = live.remove(id);
        liveBytes -= begin.byteSize();
        lives.add(new Life(begin.byteSize(), begin.stream(), begin.row(), rows.size()));
    }

    List<String> rows() {
        return rows;
    }

    /// The blocks that were freed.
    List<Life> lives() {
        return lives;
    }

    int liveBlocks() {
        return live.size();
    }

    int blocksUsedElsewhere() {
        return usedElsewhere.size();
    }

    long peakBytes() {
        return peakBytes;
    }

    long streams() {
        return lives.stream().mapToLong(Life::stream).distinct().count();
    }

    /// How many different sizes were allocated.
    long sizes() {
        return lives.stream().mapToLong(Life::byteSize).distinct().count();
    }
}
