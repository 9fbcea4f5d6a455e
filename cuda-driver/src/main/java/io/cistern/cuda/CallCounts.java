package io.cistern.cuda;

import java.util.Arrays;
import java.util.concurrent.atomic.LongAdder;

/// Counters of driver calls since the driver was opened; failed calls count too. Setting and reading the current
/// context does not count. Weakly consistent: a sum read while other threads call may miss their latest calls.
// The ordinal only indexes the array of this very run.
@SuppressWarnings("EnumOrdinal")
public final class CallCounts {
    private final LongAdder[] counts;

    /// Starts at zero.
    public CallCounts() {
        counts = new LongAdder[DriverCall.values().length];
        Arrays.setAll(counts, _ -> new LongAdder());
    }

    /// Counts one call; for implementations of [CudaDriver].
    public void count(DriverCall call) {
        counts[call.ordinal()].increment();
    }

    /// How often one function was called.
    public long of(DriverCall call) {
        return counts[call.ordinal()].sum();
    }

    /// How many calls of one kind were made.
    public long of(DriverCall.Kind kind) {
        long sum = 0;
        for (DriverCall call : DriverCall.values()) {
            if (call.kind() == kind) {
                sum += of(call);
            }
        }
        return sum;
    }

    /// What an allocator asks of the driver: calls that move memory and calls that order work, queries of them
    /// included.
    public long ofAllocators() {
        return of(DriverCall.Kind.MEMORY) + of(DriverCall.Kind.STREAM);
    }
}
