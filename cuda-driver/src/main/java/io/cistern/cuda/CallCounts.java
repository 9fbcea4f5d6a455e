package io.cistern.cuda;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;

/// Counts driver calls since the driver was opened, failed calls included. Calls that set or read the current
/// context are not counted. Sums are weakly consistent: a sum can miss calls that other threads make at the
/// same time.
// The ordinal only indexes an array of this run.
@SuppressWarnings("EnumOrdinal")
public final class CallCounts {
    private static final int CALLS = DriverCall.values().length;

    private final LongAdder[] counts;

    /// Guarded by itself.
    private final Set<Lent> lent = new HashSet<>();

    /// Counters that became unreachable.
    private final ReferenceQueue<Local> gone = new ReferenceQueue<>();

    /// A weak reference to a [Local] that keeps its counts after it becomes unreachable.
    private static final class Lent extends WeakReference<Local> {
        private final long[] counts;

        private Lent(Local local, ReferenceQueue<Local> gone) {
            super(local, gone);
            counts = local.counts;
        }
    }

    /// Starts all counters at zero.
    public CallCounts() {
        counts = new LongAdder[CALLS];
        Arrays.setAll(counts, _ -> new LongAdder());
    }

    /// Counts one call. Only implementations of [CudaDriver] call this.
    public void count(DriverCall call) {
        counts[call.ordinal()].increment();
    }

    /// Returns counters for one thread at a time, which count without the atomic instruction that [#count]
    /// needs. Their counts are part of every sum, even after the counters have become unreachable.
    public Local local() {
        Local local = new Local();
        synchronized (lent) {
            collect();
            lent.add(new Lent(local, gone));
        }
        return local;
    }

    /// Adds up the counts of unreachable counters. Visits no others: a program that starts a thread for
    /// each request has thousands of them between two garbage collections.
    private void collect() {
        for (Object each = gone.poll(); each != null; each = gone.poll()) {
            Lent old = (Lent) each;
            lent.remove(old);
            for (int call = 0; call < CALLS; call++) {
                counts[call].add(old.counts[call]);
            }
        }
    }

    /// Returns how often one function was called.
    public long of(DriverCall call) {
        synchronized (lent) {
            long sum = counts[call.ordinal()].sum();
            for (Lent each : lent) {
                sum += (long) Local.COUNTS.getOpaque(each.counts, call.ordinal());
            }
            return sum;
        }
    }

    /// Returns the number of calls of one kind.
    public long of(DriverCall.Kind kind) {
        long sum = 0;
        for (DriverCall call : DriverCall.values()) {
            if (call.kind() == kind) {
                sum += of(call);
            }
        }
        return sum;
    }

    /// Returns the number of calls of the kinds that an allocator makes: the sum of [DriverCall.Kind#MEMORY]
    /// and [DriverCall.Kind#STREAM].
    public long ofAllocators() {
        return of(DriverCall.Kind.MEMORY) + of(DriverCall.Kind.STREAM);
    }

    /// Counters for one thread at a time, from [CallCounts#local()].
    ///
    /// **Threads.** Only one thread at a time may count. If another thread takes over, a happens-before
    /// relation must order the two threads.
    public static final class Local {
        private static final VarHandle COUNTS = MethodHandles.arrayElementVarHandle(long[].class);

        private final long[] counts = new long[CALLS];

        private Local() {}

        /// Counts one call. Only implementations of [CudaDriver] call this.
        public void count(DriverCall call) {
            int index = call.ordinal();
            COUNTS.setOpaque(counts, index, counts[index] + 1);
        }
    }
}
