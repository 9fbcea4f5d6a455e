package io.cistern.caching.internal.order;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.options.PageReuse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/// Orders a stream that takes a page (the taker) after the stream that the page comes from (the giver).
///
/// 1. Memory that was freed at time `t` on one stream is *covered* for another if a fence recorded after `t` has
///    passed, or if the other stream was made to wait for such a fence. Covered pages move without a driver call.
/// 2. Else, unless the giver's newest fence covers `t`, the driver is asked whether all work of the giver has
///    finished. That is one call and serves all takers. It is not asked about a giver that waits for the
///    legacy default stream, where its answer proves nothing. If work is left, a new fence is recorded. The
///    taker waits for the fence on the device, without asking first: asking would take as many calls if the
///    fence has passed, and one more if it has not.
/// 3. A fence also covers everything that its stream had been made to wait for. So a taker that waits for one
///    stream usually need not wait for those whose memory that stream took.
///
/// One fence is kept for each stream; a wait for an older one stays valid. Fences are recorded, queried and
/// awaited under this object's monitor. No thread takes it while it holds a shard's short lock.
public final class CrossStreamOrder {
    /// The number of queries to skip after one found a giver with work left: it usually still has some.
    private static final int PAUSE = 16;

    private final Fences fences;
    private final AtomicLong clock;
    private final PageReuse reuse;
    private final DeviceCounters counters;
    private final ArrayList<StreamTimeline> withFences = new ArrayList<>(0);

    public CrossStreamOrder(Fences fences, AtomicLong clock, PageReuse reuse, DeviceCounters counters) {
        this.counters = counters;
        this.fences = fences;
        this.clock = clock;
        this.reuse = reuse;
    }

    /// Polls all fences if the policy lets only passed memory move. Called before a survey, which polls none.
    public void poll() {
        if (reuse == PageReuse.NEVER) {
            pollAll();
        }
    }

    /// Polls all fences. After [Fences#MAX_LATE] unfinished ended streams, skips other ended streams.
    private synchronized void pollAll() {
        int late = 0;
        for (StreamTimeline each : List.copyOf(withFences)) {
            if (!each.closed || late < Fences.MAX_LATE) {
                poll(each);
                late += each.closed && each.fence != Fences.PASSED ? 1 : 0;
            }
        }
    }

    /// Returns the time of the newest frees that the policy lets another stream take. If the policy is
    /// [PageReuse#NEVER], these are the frees of streams that have ended and finished, as if the memory had been
    /// returned and created again. While streams of the device are captured, asks the driver about the giver.
    ///
    /// @param waits whether the taker may be made to wait
    public synchronized long newestTakeable(StreamTimeline taker, StreamTimeline giver, boolean waits) {
        if (taker == giver) {
            return Long.MAX_VALUE;
        }
        if (waits
                && reuse != PageReuse.NEVER
                && (giver.closed ? fences.awaitable(giver.fence) : fences.recordable(giver.key))) {
            return Long.MAX_VALUE;
        }
        return coveredTime(taker, giver);
    }

    /// Returns the time of the newest frees for which the taker need not wait.
    synchronized long coveredTime(StreamTimeline taker, StreamTimeline giver) {
        if (taker == giver) {
            return Long.MAX_VALUE;
        }
        return Math.max(giver.passedTime, taker.awaited.getOrDefault(giver, -1L));
    }

    /// Whether [#precede] would make the device wait. Asks the driver each time: a query costs less than a page.
    public synchronized boolean wouldWait(StreamTimeline taker, StreamTimeline giver, long freedAt) {
        if (freedAt <= coveredTime(taker, giver)) {
            return false;
        }
        if (giver.fenceTime < freedAt) {
            giver.untilAsked = 0;
            if (isFinished(giver)) {
                return false;
            }
            if (giver.closed || isIndependent(giver) || !fences.recordable(giver.key)) {
                return true;
            }
            record(giver); // for a stream that waits for the legacy default stream, only a fence is conclusive
        }
        poll(giver);
        return freedAt > giver.passedTime;
    }

    /// Makes later work of the taker come after the giver's work on memory that it freed.
    ///
    /// @param freedAt the stamp of the free
    public synchronized void precede(StreamTimeline taker, StreamTimeline giver, long freedAt) {
        if (freedAt <= coveredTime(taker, giver) || (giver.fenceTime < freedAt && isFinished(giver))) {
            return;
        }
        if (giver.fenceTime < freedAt || (!giver.closed && !fences.awaitable(giver.fence))) {
            record(giver);
        }
        if (giver.passedTime < freedAt) {
            fences.await(taker.key, giver.fence);
            taker.awaited.put(giver, giver.fenceTime);
            giver.awaitedByFence.forEach((earlier, time) -> taker.awaited.merge(earlier, time, Math::max));
            counters.count(CacheEvent.STREAM_WAIT);
        }
    }

    /// Whether a stream's work on memory freed up to a time is known to have finished. Makes no driver call.
    public synchronized boolean isPassed(StreamTimeline stream, long freedAt) {
        return freedAt <= stream.passedTime;
    }

    /// Asks the driver whether that work [has finished][#isPassed]; if not, leaves a fence that will show
    /// when it has.
    public synchronized void ask(StreamTimeline stream, long freedAt) {
        if (freedAt > stream.passedTime) {
            poll(stream);
        }
        if (freedAt > stream.passedTime
                && !isFinished(stream)
                && !stream.closed
                && stream.fence == Fences.PASSED
                && fences.recordable(stream.key)) {
            record(stream);
        }
    }

    /// Asks the driver whether all work of a stream has finished; skips some queries after a negative answer.
    private boolean isFinished(StreamTimeline giver) {
        if (giver.closed || --giver.untilAsked >= 0 || !fences.recordable(giver.key) || !isIndependent(giver)) {
            return false;
        }
        long time = clock.getAndIncrement();
        if (!fences.finished(giver.key)) {
            giver.untilAsked = PAUSE;
            return false;
        }
        giver.untilAsked = 0;
        replace(giver, Fences.PASSED, time);
        passed(giver.awaited);
        return true;
    }

    private boolean isIndependent(StreamTimeline giver) {
        if (giver.independent == null) {
            giver.independent = fences.independent(giver.key);
        }
        return giver.independent;
    }

    private void record(StreamTimeline giver) {
        withFences.ensureCapacity(withFences.size() + 1);
        long time = clock.getAndIncrement();
        long fence = fences.record(giver.key);
        replace(giver, fence, time);
        noteAwaited(giver);
    }

    private static void noteAwaited(StreamTimeline giver) {
        // These waits are no longer needed. Those for streams that are gone would otherwise stay until the
        // next garbage collection and be copied with each fence.
        giver.awaited.entrySet().removeIf(each -> each.getKey().isGone || each.getValue() <= each.getKey().passedTime);
        giver.awaitedByFence.clear();
        giver.awaitedByFence.putAll(giver.awaited);
    }

    private void replace(StreamTimeline giver, long fence, long time) {
        long old = giver.fence;
        giver.fence = fence;
        giver.fenceTime = time;
        if (fence == Fences.PASSED) {
            giver.passedTime = time;
        }
        if (old == Fences.PASSED && fence != Fences.PASSED) {
            withFences.add(giver);
        } else if (old != Fences.PASSED && fence == Fences.PASSED) {
            withFences.remove(giver);
        }
        fences.release(old);
    }

    private void poll(StreamTimeline giver) {
        if (giver.fence != Fences.PASSED && fences.passed(giver.fence)) {
            replace(giver, Fences.PASSED, giver.fenceTime);
            passed(giver.awaitedByFence);
        }
    }

    private static void passed(Map<StreamTimeline, Long> awaited) {
        awaited.forEach((earlier, time) -> earlier.passedTime = Math.max(earlier.passedTime, time));
    }

    /// Ends a stream: nothing is recorded on it later. Its shards may be [gone][#forget] by now, if its work is done.
    ///
    /// @param end the [end][Fences#end] after its last work
    public synchronized void closing(StreamTimeline ended, long end) {
        clock.getAndIncrement();
        withFences.ensureCapacity(withFences.size() + 1);
        try {
            noteAwaited(ended);
        } finally {
            ended.awaited.clear();
            ended.closed = true;
            replace(ended, ended.isGone ? Fences.PASSED : end, Long.MAX_VALUE); // last: the driver may refuse before
        }
    }

    /// Whether all work of an ended stream has finished; asks the driver if that is not known. False while
    /// another thread is still ending the stream.
    public synchronized boolean hasFinished(StreamTimeline ended) {
        poll(ended);
        return ended.closed && ended.fence == Fences.PASSED;
    }

    /// Makes later work of a stream come after all work of an ended one, if the policy allows.
    public synchronized boolean follow(StreamTimeline successor, StreamTimeline ended) {
        if (reuse == PageReuse.NEVER || !ended.closed || !fences.awaitable(ended.fence)) {
            return false;
        }
        precede(successor, ended, Long.MAX_VALUE);
        return true;
    }

    /// Forgets an ended stream of which nothing is left.
    public synchronized void forget(StreamTimeline ended) {
        withFences.remove(ended);
        ended.isGone = true;
    }

    public synchronized void close() {
        for (StreamTimeline timeline : List.copyOf(withFences)) {
            replace(timeline, Fences.PASSED, timeline.fenceTime);
        }
    }
}
