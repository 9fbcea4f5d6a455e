package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/// Leases bytes of one allocator on one device to threads, and tracks the most bytes requested since the
/// last reset.
///
/// **Invariant**: leased ≥ the sum of all threads' ceilings ≥ requested bytes, except for the blocks of
/// allocations that have not returned yet. The first two are equal when idle, and then at most threads ×
/// [#MAX_CREDIT] above the requested bytes.
///
/// **The peak** decides how far threads may lease. Bytes leased below the peak so far can't raise it, so
/// threads lease freely up to a limit a little above the most bytes that all threads together had requested at
/// a known moment. A thread that wants more lowers all ceilings to the requested bytes ([#recall]), which gives
/// the next known moment. So the peak is at most that little too high, and there are only as many recalls as
/// steps of that size from the first byte to the peak.
///
/// **The slack.** Threads that take turns lease more than all of them use at once, so a recall may find no new
/// peak. If that happens every few allocations, threads may lease more for a while, up to [#MAX_SLACK_BYTES].
///
/// **Changes of a ceiling.** While ceilings stay or rise, the most bytes requested since a thread's `most`
/// started again are at most leased − (ceiling − most) of that thread. So a thread that lowers a ceiling notes
/// that bound first; a thread that raises one need not. A recall claims all ceilings, so it may subtract what
/// all threads together stayed below them. A reader of the peak recalls, if the present leases would decide
/// it.
final class Meter {
    /// The bytes that a thread leases beyond its need if there is plenty. A thread that allocates blocks up to
    /// 1 MiB then rarely needs to lease more.
    static final long CHUNK = 2L << 20;

    /// Twice the chunk, so that a thread that frees and allocates in turn neither leases nor gives back each
    /// time.
    static final long MAX_CREDIT = 2 * CHUNK;

    /// Below this a recall costs less than the leases that it saves.
    private static final long MIN_CHUNK = 8 << 10;

    /// How much too high the peak may be for each thread, at first and at most.
    private static final long SLACK_BYTES = 4 << 10;

    private static final long MAX_SLACK_BYTES = 64 << 10;

    /// If a recall comes after this many allocations, it costs each of them little.
    private static final long RARE = 1 << 9;

    /// How much too high it may be in all, as a shift: less than 2 %.
    static final int SLACK_SHIFT = 6;

    private static final Step CLAIM = (meter, tally) -> {
        meter.threads = Math.max(meter.threads, ++meter.threadsOfRoute);
        meter.anyClaimed |= tally.claim();
        meter.allocations += tally.allocated();
    };
    private static final Step LOWER = (_, tally) -> tally.lowerCeiling();
    private static final Step GIVE_UP = (_, tally) -> tally.giveUpClaim();

    final int device;
    private final DeviceMeters ofDevice;
    private final ReservedBytes told;
    private final AtomicLong leased = new AtomicLong();

    /// Threads lease up to this without a recall. Written under the lock of this.
    private volatile long limit;

    /// The most bytes known to have been requested at one moment since the last reset. Guarded by this.
    private long reached;

    /// A thread leases the bytes left below the limit, shifted right by this, so that they suffice for twice as
    /// many threads as there are. As of the last recall.
    private volatile int shareShift = 1;

    /// The thresholds for which this meter counts. Written by [DeviceMeters].
    volatile Threshold[] thresholds = {};

    /// The routes that count here and have not drained. Guarded by this.
    private final List<Route> routes = new ArrayList<>();

    /// Results of the last recall: the bytes by which it lowered all ceilings together, the bytes that all
    /// threads together had stayed below their ceilings, and the number of threads of the route that has the
    /// most. Guarded by this.
    long lowered;

    long unused;
    private int threads;
    private int threadsOfRoute;
    private boolean anyClaimed;
    private long allocations;

    /// The allocations before the last recall that a thread's need caused. Guarded by this.
    private long allocationsBefore;

    /// The present slack for each thread. Written under the lock of this.
    private volatile long slack = SLACK_BYTES;

    /// The fewest bytes that a thread leases beyond its need, at most half of the slack. Written under the lock of
    /// this.
    private volatile long leastChunk = SLACK_BYTES / 2;

    /// The counts of the routes that have drained. Guarded by this.
    private final TallySum drained = new TallySum();

    /// Used to sum up the counts of one route. Guarded by this.
    private final TallySum counted = new TallySum();

    /// The most bytes requested since the last reset, as far as threads have noted it: a thread that lowers
    /// a ceiling notes the bound that held until then. A reset replaces the object, so that late notes from
    /// before it are lost.
    private volatile AtomicLong peak = new AtomicLong();

    /// @param ofDevice all meters of the device
    /// @param told the allocator's reports of the memory that it holds
    Meter(int device, DeviceMeters ofDevice, ReservedBytes told) {
        this.device = device;
        this.ofDevice = ofDevice;
        this.told = told;
    }

    /// Raises a thread's ceiling to its requested bytes, and somewhat beyond.
    ///
    /// The loop ends: in each turn that fails, another thread succeeded, or a recall has raised this thread's
    /// ceiling, so that it needs nothing more.
    ///
    /// @param byteSize the size of the block that went beyond it; the thread keeps as many bytes when that
    ///     block is freed
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
            if (ceiling == Tally.CLAIMED || need + leastChunk > limit - now) {
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
        return Math.max(leastChunk, Math.min(CHUNK, (limit - leasedThen) >> shareShift));
    }

    /// Returns how far a thread may fall below its ceiling before it lowers it. A thread that is alone
    /// keeps the bytes of a block of any size that it frees, since no other thread could want them, unless
    /// a threshold must notice the fall.
    private long credit(long chunk, long byteSize) {
        long most = shareShift <= 1 && thresholds.length == 0 ? Long.MAX_VALUE : MAX_CREDIT;
        return Math.min(most, 2 * chunk + byteSize);
    }

    /// Returns the bytes that a thread may now keep below its ceiling.
    long credit() {
        return chunk(leased.get());
    }

    /// Lowers all ceilings to the requested bytes, and raises the one of the thread that needs more.
    private synchronized void recall(Tally tally, long byteSize) {
        long ceiling = tally.ceiling();
        long need = tally.requested() - ceiling;
        if (need + leastChunk <= limit - leased.get()) {
            return; // another thread's recall was enough
        }
        long requested;
        try {
            requested = lowerAll() + need;
        } catch (OutOfMemoryError | IllegalStateException noFence) {
            requested = leased.get() + need; // maybe more than was ever requested, never less
        }
        note(peak, requested);
        adjustSlack(requested);
        reach(Math.max(reached, requested));
        long more = need + chunk(requested);
        leased.addAndGet(more);
        // Nobody claims it now. Another thread may raise it, by bytes that it leased itself.
        while (!tally.moveCeiling(ceiling, ceiling + more, credit(more - need, byteSize))) {
            ceiling = tally.ceiling();
        }
    }

    private void adjustSlack(long requested) {
        long since = allocations - allocationsBefore;
        allocationsBefore = allocations;
        if (since > RARE * RARE) {
            slack = SLACK_BYTES;
        } else if (since < RARE && requested <= reached) {
            slack = Math.min(2 * slack, MAX_SLACK_BYTES);
        }
        leastChunk = Math.min(MIN_CHUNK, slack / 2);
    }

    /// Lowers all ceilings to the requested bytes.
    ///
    /// @return the sum of these, without the bytes by which threads are beyond their ceilings
    private long lowerAll() {
        long before;
        try {
            recall();
        } finally {
            before = leased.getAndAdd(-lowered); // also after an error, when some ceilings are lowered
            if (lowered != 0) {
                note(peak, before - unused);
            }
        }
        note(peak, before - unused);
        shareShift = Integer.SIZE - Integer.numberOfLeadingZeros(threads);
        return before - lowered;
    }

    /// Claims the ceilings, lets a fence pass, and lowers them. After an error some are as before, and
    /// [#lowered] has the sum of the others. It allocates no Java heap, except for what the fence may need.
    private void recall() {
        lowered = 0;
        unused = 0;
        threads = 0;
        anyClaimed = false;
        allocations = 0;
        try {
            forEachTally(CLAIM);
            if (anyClaimed) {
                if (ProcessFence.isSupported()) {
                    ProcessFence.everywhere();
                }
                forEachTally(LOWER);
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
        limit = requested + Math.max(requested >> SLACK_SHIFT, threads * slack);
    }

    /// Takes back the bytes by which a ceiling was lowered.
    ///
    /// @return the bytes leased before
    long giveBack(long byteSize) {
        long before = leased.getAndAdd(-byteSize);
        moved();
        return before;
    }

    /// Checks the thresholds.
    void moved() {
        ofDevice.moved();
        for (Threshold threshold : thresholds) {
            threshold.moved();
        }
    }

    /// Returns the bytes that the allocator reports as held; the requested bytes if it reports nothing.
    long reserved() {
        return told.isTold(device) ? told.bytes(device) : sum().requestedBytes;
    }

    /// Returns an upper bound of [#reserved], with leased bytes instead of requested ones.
    long mostReserved() {
        return told.isTold(device) ? told.bytes(device) : leased();
    }

    /// Returns [#reserved], with [#settledBytes] instead of requested bytes.
    long settledReserved() {
        return told.isTold(device) ? told.bytes(device) : settledBytes();
    }

    /// Adds a route that counts here.
    synchronized void counts(Route route) {
        routes.add(route);
    }

    /// Keeps the counts of a route that has no live block and will have none.
    ///
    /// @return whether it was the last one
    boolean retire(Route route) {
        boolean last = forget(route);
        moved();
        return last;
    }

    private synchronized boolean forget(Route route) {
        routes.remove(route);
        counted.clear();
        route.addTo(counted);
        drained.add(counted);
        drained.ceilings = 0;
        drained.unused = 0;
        note(peak, leased.getAndAdd(-counted.ceilings) - counted.unused);
        return routes.isEmpty();
    }

    /// Returns the sum of the counters of all routes that ever counted here.
    synchronized TallySum sum() {
        TallySum sum = new TallySum();
        sum.add(drained);
        for (int i = 0; i < routes.size(); i++) {
            routes.get(i).addTo(sum);
        }
        return sum;
    }

    /// Returns the most bytes requested since the last reset, from counters that were [summed up][#sum] now.
    long peakBytes(TallySum sum) {
        long known = Math.max(sum.requestedBytes, peak.get());
        long atMost = leased() - sum.unused;
        return atMost <= known ? known : Math.max(known, Math.min(atMost, recalledPeak()));
    }

    private synchronized long recalledPeak() {
        try {
            lowerAll();
            return Math.max(leased(), peak.get());
        } catch (OutOfMemoryError | IllegalStateException noFence) {
            return Long.MAX_VALUE;
        }
    }

    /// Lowers all ceilings, and returns the bytes leased then: the requested bytes, and those that threads
    /// lease meanwhile.
    synchronized long settledBytes() {
        try {
            lowerAll();
        } catch (OutOfMemoryError | IllegalStateException noFence) {
            // The leases are an upper bound.
        }
        return leased();
    }

    /// Begins a new peak. Each ceiling is at the requested bytes then, so the next allocation of a thread goes
    /// beyond it and starts the thread's `most` again.
    void resetPeak() {
        beginPeak();
        ofDevice.reset();
        moved();
    }

    private synchronized void beginPeak() {
        long requested = lowerAll();
        peak = new AtomicLong();
        note(peak, requested);
        slack = SLACK_BYTES;
        reach(requested);
    }

    long leased() {
        return leased.get();
    }

    AtomicLong peak() {
        return peak;
    }

    /// Notes that live blocks may have had this many requested bytes.
    static void note(AtomicLong peak, long requestedBytes) {
        long known = peak.get();
        while (requestedBytes > known && !peak.compareAndSet(known, requestedBytes)) {
            known = peak.get(); // another thread has raised it
        }
    }
}
