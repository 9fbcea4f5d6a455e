package io.cistern.cli.replay;

import io.cistern.DeviceMemory;
import io.cistern.cli.trace.Trace;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemorySnapshot;
import java.util.Optional;
import java.util.function.Consumer;

/// Takes a snapshot at one moment of the first pass, with the history until then: at the peak of the trace's live
/// memory, or behind a row.
///
/// **Threads.** One at a time.
public final class PeakSnapshot implements BlockWork {
    private final DeviceMemory memory;
    private final MemoryHistory history;
    private final Moment moment;
    private final long peakBytes;
    private long liveBytes;
    private Optional<MemorySnapshot> taken = Optional.empty();

    /// The moment of a snapshot.
    ///
    /// @param row the row behind which the snapshot is taken; -1 for the peak
    /// @param receiver receives it
    public record Moment(int row, Consumer<MemorySnapshot> receiver) {
        static Moment atPeak(Consumer<MemorySnapshot> receiver) {
            return new Moment(-1, receiver);
        }
    }

    PeakSnapshot(DeviceMemory memory, Trace trace, Moment moment) {
        this.moment = moment;
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
    public void play(byte op, int row, long address, long byteSize, long stream) {
        if (op != Trace.ALLOCATE) {
            liveBytes -= op == Trace.FREE ? byteSize : 0;
            return;
        }
        liveBytes += byteSize;
        boolean isNow = moment.row < 0 ? liveBytes >= peakBytes : row == moment.row;
        if (isNow && taken.isEmpty()) {
            taken = Optional.of(MemorySnapshot.take(memory, "peak of a replay"));
            history.stop();
        }
    }

    /// Hands the snapshot over. If allocations failed or threads took turns, the trace's peak may not occur; it
    /// takes a snapshot now then.
    void handOver() {
        moment.receiver.accept(taken.orElseGet(
                () -> MemorySnapshot.take(memory, "end of a replay that did not reach the peak of its trace")));
    }
}
