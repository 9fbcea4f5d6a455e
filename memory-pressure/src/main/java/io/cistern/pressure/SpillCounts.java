package io.cistern.pressure;

/// Counts the moves of buffers, without garbage. Thread-safe.
///
/// **Invariant.** The bytes at each place are the sum over the buffers there.
final class SpillCounts {
    private long deviceBytes;
    private long hostBytes;
    private long fileBytes;
    private long spills;
    private long spilledBytes;
    private long writes;
    private long writtenBytes;
    private long returns;
    private long returnedBytes;
    private long failures;

    /// Counts a move from one place to another; a new buffer comes from [SpillPlace#CLOSED].
    synchronized void moved(SpillPlace from, SpillPlace to, long byteSize) {
        add(from, -byteSize);
        add(to, byteSize);
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

    private void add(SpillPlace place, long byteSize) {
        switch (place) {
            case DEVICE -> deviceBytes += byteSize;
            case HOST -> hostBytes += byteSize;
            case FILE -> fileBytes += byteSize;
            case CLOSED -> {}
        }
    }

    synchronized void failed() {
        failures++;
    }

    synchronized SpillStatistics statistics() {
        return new SpillStatistics(
                deviceBytes,
                hostBytes,
                fileBytes,
                spills,
                spilledBytes,
                writes,
                writtenBytes,
                returns,
                returnedBytes,
                failures);
    }
}
