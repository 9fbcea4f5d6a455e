package io.cistern.benchmarks.generated;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// The rows of a generated trace, and what can be told of its blocks.
final class Recording implements TraceSink {
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
        Recording recording = new Recording();
        trace.write(seed, capacityBytes, recording);
        return recording;
    }

    @Override
    public void allocate(long id, long byteSize, long stream) {
        live.put(id, new Begin(byteSize, stream, rows.size()));
        liveBytes += byteSize;
        peakBytes = Math.max(peakBytes, liveBytes);
        rows.add("a" + id + " " + byteSize + " " + stream);
    }

    @Override
    public void free(long id, long stream) {
        Begin begin = live.remove(id);
        liveBytes -= begin.byteSize();
        lives.add(new Life(begin.byteSize(), begin.stream(), begin.row(), rows.size()));
        rows.add("f" + id + " " + stream);
    }

    @Override
    public void use(long id, long stream) {
        usedElsewhere.add(id);
        rows.add("u" + id + " " + stream);
    }

    @Override
    public void await(long stream, long awaited) {
        rows.add("w" + stream + " " + awaited);
    }

    @Override
    public void end(long stream) {
        rows.add("e" + stream);
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
