package io.cistern.cli.replay;

import io.cistern.DeviceMemory;
import io.cistern.cli.trace.Trace;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemorySnapshot;
import java.util.Optional;

/// Takes a snapshot at the peak of a trace's live memory in the first pass, with the history until then.
///
/// **Threads.** One at a time.
final class PeakSnapshot implements BlockWork {
    private final DeviceMemory memory;
    private final MemoryHistory history;
    private final long peakBytes;
    private long liveBytes;
    private Optional<MemorySnapshot> taken = Optional.empty();

    PeakSnapshot(DeviceMemory memory, Trace trace) {
        this.memory = memory;
        this.peakBytes = trace.requestedPeakBytes();
        history = MemoryHistory.of(memory);
        history.start(new HistoryOptions(eventsOf(trace.operations()), false));
    }

    /// Returns room for several events per operation, because pages and waits add some.
    private static int eventsOf(int operations) {
        return Math.clamp(4L * operations, 1 << 12, 1 << 22);
    }

    @Override
    public void allocated(int row, long address, long byteSize, long stream) {
        liveBytes += byteSize;
        if (liveBytes >= peakBytes && taken.isEmpty()) {
            taken = Optional.of(MemorySnapshot.take(memory, "peak of a replay"));
            history.stop();
        }
    }

    @Override
    public void freeing(int row, long address, long byteSize, long stream) {
        liveBytes -= byteSize;
    }

    /// Returns the snapshot. If allocations failed or threads took turns, the trace's peak may not occur; it
    /// takes a snapshot now then.
    MemorySnapshot snapshot() {
        return taken.orElseGet(
                () -> MemorySnapshot.take(memory, "end of a replay that did not reach the peak of its trace"));
    }
}
