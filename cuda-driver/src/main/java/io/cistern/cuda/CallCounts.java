package io.cistern.cuda;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;

/// Counters of driver calls since the driver was opened; failed calls count too. Setting and reading the current
/// context does not count. Weakly consistent: a sum read while other threads call may miss their latest calls.
// The ordinal only indexes the array of this very run.
@SuppressWarnings("EnumOrdinal")
public final class CallCounts {
    private static final int CALLS = DriverCall.values().length;

    private final LongAdder[] counts;

    /// Guarded by itself.
    private final Set<Lent> lent = new HashSet<>();

    /// Those that nobody has any more.
    private final ReferenceQueue<Local> gone = new ReferenceQueue<>();

    /// A [Local], and its counts for when it is gone.
    private static final class Lent extends WeakReference<Local> {
        private final long[] counts;

        private Lent(Local local, ReferenceQueue<Local> gone) {
            super(local, gone);
            counts = local.counts;
        }
    }

    /// Starts at zero.
    public CallCounts() {
        counts = new LongAdder[CALLS];
        Arrays.setAll(counts, _ -> new LongAdder());
    }

    /// Counts one call; for implementations of [CudaDriver].
    public void count(DriverCall call) {
        counts[call.ordinal()].increment();
    }

    /// Counters for one thread at a time, which count without the atomic instruction that [#count] needs; part of every
    /// sum, also once nobody has them any more.
    public Local local() {
        Local local = new Local();
        synchronized (lent) {
            collect();
            lent.add(new Lent(local, gone));
        }
        return local;
    }

    /// Adds up what is left of those that nobody has any more: no others are looked at, since a program may
    /// make a thread for each request, and thousands of them between two collections.
    private void collect() {
        for (Object each = gone.poll(); each != null; each = gone.poll()) {
            Lent old = (Lent) each;
            lent.remove(old);
            for (int call = 0; call < CALLS; call++) {
                counts[call].add(old.counts[call]);
            }
        }
    }

    /// How often one function was called.
    public long of(DriverCall call) {
        synchronized (lent) {
            long sum = counts[call.ordinal()].sum();
            for (Lent each : lent) {
                sum += (long) Local.COUNTS.getOpaque(each.counts, call.ordinal());
            }
            return sum;
        }
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

    /// See [#local()].
    ///
    /// **Threads.** One at a time, one after the other in happens-before order.
    public static final class Local {
        private static final VarHandle COUNTS = MethodHandles.arrayElementVarHandle(long[].class);

        private final long[] counts = new long[CALLS];

        private Local() {}

        /// Counts one call; for implementations of [CudaDriver].
        public void count(DriverCall call) {
            int index = call.ordinal();
            COUNTS.setOpaque(counts, index, counts[index] + 1);
        }
    }
}
