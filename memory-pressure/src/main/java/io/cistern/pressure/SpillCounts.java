package io.cistern.pressure;

import java.util.EnumMap;
import java.util.Map;

/// Counts the moves of buffers. Thread-safe.
///
/// **Invariant.** The bytes at each place are the sum over the buffers there.
final class SpillCounts {
    private final Map<SpillPlace, Long> bytesAt = new EnumMap<>(SpillPlace.class);
    private long spills;
    private long spilledBytes;
    private long writes;
    private long writtenBytes;
    private long returns;
    private long returnedBytes;
    private long failures;

    /// Counts a move from one place to another; a new buffer comes from [SpillPlace#CLOSED].
    synchronized void moved(SpillPlace from, SpillPlace to, long byteSize) {
        bytesAt.merge(from, -byteSize, Long::sum);
        bytesAt.merge(to, byteSize, Long::sum);
        if (from == SpillPlace.DEVICE && to != SpillPlace.CLOSED) {
            spills++;
            spilledBytes += byteSize;
        }
        if (to == SpillPlace.FILE) {
            writes++;
            writtenBytes += byteSize;
        }
        if (to == SpillPlace.DEVICE && from != SpillPlace.CLOSED) {
            returns++;
            returnedBytes += byteSize;
        }
    }

    synchronized void failed() {
        failures++;
    }

    synchronized SpillStatistics statistics() {
        return new SpillStatistics(
                bytesAt.getOrDefault(SpillPlace.DEVICE, 0L),
                bytesAt.getOrDefault(SpillPlace.HOST, 0L),
                bytesAt.getOrDefault(SpillPlace.FILE, 0L),
                spills,
                spilledBytes,
                writes,
                writtenBytes,
                returns,
                returnedBytes,
                failures);
    }
}
