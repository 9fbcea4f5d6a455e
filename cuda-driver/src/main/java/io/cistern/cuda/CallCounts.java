package io.cistern.cuda;

/// Counters of driver calls since the driver was opened; failed calls count too. Setting and reading the current context
/// does not count. Weakly consistent: a sum read while other threads call may miss their latest calls.
public final class CallCounts {
    private final java.util.concurrent.atomic.LongAdder[] counts;

    /// Starts at zero.
    public CallCounts() {
        counts = new java.util.concurrent.atomic.LongAdder[DriverCall.values().length];
        java.util.Arrays.setAll(counts, _ -> new java.util.concurrent.atomic.LongAdder());
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

    /// What an allocator asks of the driver: calls that move memory and calls that order work, queries of them included.
    public long ofAllocators() {
        return of(DriverCall.Kind.MEMORY) + of(DriverCall.Kind.STREAM);
    }
}
