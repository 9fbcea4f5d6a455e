package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/// The bytes of one allocator on one device that threads may request, and the most that were requested
/// since the last reset.
///
/// **Invariant**: leased ≥ the sum of all threads' ceilings ≥ requested bytes, but for the blocks of
/// allocations that have not returned yet. They are equal at rest, and then at most threads ×
/// [#MAX_CREDIT] above what is requested.
///
/// **The peak** is what makes ceilings narrow or wide. Bytes leased below a peak that was reached can't raise it,
/// so threads lease freely up to a limit a little above the highest that all requested together at a
/// known moment. Beyond that, the thread that wants more has all ceilings lowered to what is requested
/// ([#recall]), which gives the next known moment. So the peak is at most that little too high, and there are as
/// many recalls as steps from the first byte to the peak: some hundred.
///
/// **What a change has to tell.** While ceilings stay as they are or rise, the most that was requested is at most
/// leased − (ceiling − most) of any thread, from the last time that thread's `most` began
/// anew. So a thread that lowers a ceiling notes that bound first; one that raises it need not.
final class Meter {
    /// What a thread leases beyond its need where there is plenty: a mix of blocks up to 1 MiB then
    /// rarely comes back for more.
    static final long CHUNK = 2L << 20;

    /// Twice the chunk, so that a thread that frees and allocates in turn neither leases nor gives back each
    /// time.
    static final long MAX_CREDIT = 2 * CHUNK;

    /// Below this a recall costs less than the leases that it saves.
    private static final long MIN_CHUNK = 8 << 10;

    /// What the peak may be too high for each thread.
    private static final long SLACK_BYTES = 64 << 10;

    /// What it may be too high in all, as a shift: less than 2 %.
    private static final int SLACK_SHIFT = 6;

    private static final Step CLAIM = (meter, tally) -> {
        meter.threads = Math.max(meter.threads, ++meter.threadsOfRoute);
        meter.anyClaimed |= tally.claim();
    };
    private static final Step SETTLE = (_, tally) -> tally.settle();
    private static final Step GIVE_UP = (_, tally) -> tally.giveUpClaim();

    final int device;
    private final ReservedBytes told;
    private final AtomicLong leased = new AtomicLong();

    /// Up to which threads lease without a recall. Changed by this.
    private volatile long limit;

    /// The highest known sum of what was requested at one moment since the last reset. Guarded by this.
    private long reached;

    /// A thread leases the bytes below the limit shifted by this: so twice as many threads
    /// as there are have some. As of the last recall.
    private volatile int shareShift = 1;

    /// Those for which this meter counts. Written by [Thresholds].
    volatile Threshold[] thresholds = {};

    /// The routes that count here and have not drained. Guarded by this.
    private final List<Route> routes = new ArrayList<>();

    /// What the last recall found: by how much it lowered ceilings together, the most that one thread stayed
    /// below its ceiling before, and how many threads count for the route that has the most of them. Guarded by
    /// this.
    long lowered;

    long unused;
    private int threads;
    private int threadsOfRoute;
    private boolean anyClaimed;

    /// What those counted that have. Guarded by this.
    private final TallySum drained = new TallySum();

    /// Where those of one route are summed up. Guarded by this.
    private final TallySum counted = new TallySum();

    /// The most bytes requested since the last reset, as far as threads have told: a thread that lowers a ceiling
    /// tells the bound that it kept until then. A reset replaces it, so that nobody hears what was noted before.
    private volatile AtomicLong peak = new AtomicLong();

    /// @param told what the allocator tells of the memory that it holds
    Meter(int device, ReservedBytes told) {
        this.device = device;
        this.told = told;
    }

    /// Raises a thread's ceiling to what is requested there, and somewhat beyond.
    ///
    /// Each turn that does not succeed is one in which another thread did, or which lowered all ceilings;
    /// after that the thread needs nothing.
    ///
    /// @param byteSize of the block that went beyond it: the thread keeps as much when that is freed
    void raise(Tally tally, long byteSize) {
        while (!tryRaise(tally, byteSize)) {
            recall(tally, byteSize);
        }
        moved();
    }

    /// @return false if there are not enough bytes below the limit, or the ceiling is claimed
    private boolean tryRaise(Tally tally, long byteSize) {
        while (true) {
            long ceiling = tally.ceiling();
            long need = tally.requested() - ceiling;
            if (need <= 0) {
                return true;
            }
            long now = leased.get();
            if (ceiling == Tally.CLAIMED || need + MIN_CHUNK > limit - now) {
                return false;
            }
            long more = need + chunk(now + need);
            if (leased.compareAndSet(now, now + more)) {
                if (tally.moveCeiling(ceiling, ceiling + more, credit(more - need, byteSize))) {
                    return true;
                }
                leased.addAndGet(-more);
            }
        }
    }

    private long chunk(long leasedThen) {
        return Math.max(MIN_CHUNK, Math.min(CHUNK, (limit - leasedThen) >> shareShift));
    }

    /// How far a thread may fall below its ceiling before it lowers it. A thread that is
    /// alone keeps the bytes of the block that it frees, whatever its size: nobody else could want them.
    private long credit(long chunk, long byteSize) {
        long most = shareShift <= 1 ? Long.MAX_VALUE : MAX_CREDIT;
        return Math.min(most, 2 * chunk + byteSize);
    }

    /// What a thread may now have below its ceiling.
    long credit() {
        return chunk(leased.get());
    }

    /// Lets a thread go on, after all ceilings were lowered to what is requested.
    private synchronized void recall(Tally tally, long byteSize) {
        long ceiling = tally.ceiling();
        long need = tally.requested() - ceiling;
        if (need + MIN_CHUNK <= limit - leased.get()) {
            return; // another thread's recall was enough
        }
        long requested;
        try {
            requested = lowerAll() + need;
        } catch (OutOfMemoryError | IllegalStateException noFence) {
            requested = leased.get() + need; // not known to be reached, but it is not less
        }
        note(peak, requested);
        reach(Math.max(reached, requested));
        long more = need + chunk(requested);
        leased.addAndGet(more);
        // Nobody claims it. Another thread that raises it does so by bytes that are leased besides.
        while (!tally.moveCeiling(ceiling, ceiling + more, credit(more - need, byteSize))) {
            ceiling = tally.ceiling();
        }
    }

    /// Lowers all ceilings to what is requested.
    ///
    /// @return how much that is in all, without what threads are beyond their ceilings
    private long lowerAll() {
        long before;
        try {
            recall();
        } finally {
            before = leased.getAndAdd(-lowered); // also after an error, by which some are lowered
            if (lowered != 0) {
                note(peak, before - unused);
            }
        }
        note(peak, before - unused);
        shareShift = Integer.SIZE - Integer.numberOfLeadingZeros(threads);
        return before - lowered;
    }

    /// Claims the ceilings, lets a fence pass, and lowers them; after an error some are as before, and [#lowered]
    /// tells of the others. Allocates nothing on the Java heap, but for what the fence may need.
    private void recall() {
        lowered = 0;
        unused = 0;
        threads = 0;
        anyClaimed = false;
        try {
            forEachTally(CLAIM);
            if (anyClaimed) {
                if (ProcessFence.isSupported()) {
                    ProcessFence.everywhere();
                }
                forEachTally(SETTLE);
            }
        } finally {
            if (anyClaimed) {
                forEachTally(GIVE_UP);
            }
        }
    }

    private interface Step {
        void take(Meter meter, Tally tally);
    }

    private void forEachTally(Step step) {
        for (int i = 0; i < routes.size(); i++) {
            Route route = routes.get(i);
            threadsOfRoute = 0;
            for (ThreadCounters counters : route.threads.all()) {
                Tally tally = counters.find(route);
                if (tally != null) {
                    step.take(this, tally);
                }
            }
        }
    }

    private void reach(long requested) {
        reached = requested;
        limit = requested + Math.max(requested >> SLACK_SHIFT, threads * SLACK_BYTES);
    }

    /// Takes bytes back by which a ceiling was lowered.
    ///
    /// @return what was leased before
    long giveBack(long byteSize) {
        long before = leased.getAndAdd(-byteSize);
        moved();
        return before;
    }

    /// Has thresholds looked at.
    void moved() {
        for (Threshold threshold : thresholds) {
            threshold.moved();
        }
    }

    /// Returns the bytes that the allocator holds, as far as it tells; else what is requested.
    long reserved() {
        return told.isTold(device) ? told.bytes(device) : sum().requestedBytes;
    }

    /// Returns the same at most: what is leased in place of what is requested.
    long mostReserved() {
        return told.isTold(device) ? told.bytes(device) : leased();
    }

    /// Lets one more route count here.
    synchronized void counts(Route route) {
        routes.add(route);
    }

    /// Keeps what a route counted that has no live block and will have none.
    ///
    /// @return whether it was the last one
    boolean retire(Route route) {
        boolean last = forget(route);
        moved();
        return last;
    }

    private synchronized boolean forget(Route route) {
        if (!routes.remove(route)) {
            return false;
        }
        counted.clear();
        route.addTo(counted);
        drained.add(counted);
        drained.ceilings = 0;
        drained.unused = 0;
        note(peak, leased.getAndAdd(-counted.ceilings) - counted.unused);
        return routes.isEmpty();
    }

    /// The counters of all routes that ever counted here.
    synchronized TallySum sum() {
        TallySum sum = new TallySum();
        sum.add(drained);
        for (int i = 0; i < routes.size(); i++) {
            routes.get(i).addTo(sum);
        }
        return sum;
    }

    /// The most requested since the last reset, as far as counters tell that were [summed up][#sum] now.
    long peakBytes(TallySum sum) {
        long atMost = Math.max(leased() - sum.unused, peak.get());
        return Math.max(sum.requestedBytes, atMost);
    }

    /// Begins a new peak. The caller then lets its own thread begin anew, which makes the peak exact
    /// while no other allocates.
    void resetPeak() {
        beginPeak();
        moved();
    }

    private synchronized void beginPeak() {
        long requested = lowerAll();
        peak = new AtomicLong();
        note(peak, requested);
        reach(requested);
    }

    long leased() {
        return leased.get();
    }

    AtomicLong peak() {
        return peak;
    }

    /// Notes so many bytes for a [peak][#peak].
    static void note(AtomicLong peak, long requestedBytes) {
        long known = peak.get();
        while (requestedBytes > known && !peak.compareAndSet(known, requestedBytes)) {
            known = peak.get(); // which has grown
        }
    }
}
