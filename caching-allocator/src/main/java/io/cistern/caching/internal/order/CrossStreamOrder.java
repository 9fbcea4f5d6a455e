package io.cistern.caching.internal.order;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.options.PageReuse;
import java.util.List;
import java.util.Map;

/// Order between the stream that a page comes from and the one that takes it.
///
/// 1. What was freed at time `t` on a stream is *covered* for another if a fence recorded after `t` has passed,
/// or if the other stream was made to wait for one. Pages that are covered move without a driver call.
/// 2. Else, unless the giver's newest fence covers `t`, the giver is asked whether all its work has finished,
/// which is one call and holds for all takers; unless it waits for the legacy default stream, which the answer
/// says nothing about. If not, a new fence is recorded. The taker waits for the fence on the device, unasked: to
/// ask would be as many calls where it has passed, and one more where it has not.
/// 3. A fence stands also for all that its stream had been made to wait for before: so a taker that waits for one
/// stream mostly needs not wait for those whose memory that stream took.
///
/// One fence a stream is kept; a wait made for an older one stays. Fences are recorded, asked and awaited under
/// this object's monitor, which is never taken with a shard's short lock held.
public final class CrossStreamOrder {
    /// A giver that had work when it was asked is not asked the next times: it mostly has some then, too.
    private static final int PAUSE = 16;

    private final Fences fences;
    private final MissClock clock;
    private final PageReuse reuse;
    private final DeviceCounters counters;
    private final ReservedList<StreamTimeline> withFences = new ReservedList<>();

    public CrossStreamOrder(Fences fences, MissClock clock, PageReuse reuse, DeviceCounters counters) {
        this.counters = counters;
        this.fences = fences;
        this.clock = clock;
        this.reuse = reuse;
    }

    /// Asks the driver what has passed, where only that counts. Before a look, which makes no driver calls.
    public void poll() {
        if (reuse == PageReuse.NEVER) {
            pollAll();
        }
    }

    /// Of streams that have ended, no more are asked once [so many][Fences#MAX_LATE] had not finished.
    private synchronized void pollAll() {
        int late = 0;
        for (StreamTimeline each : withFences.copy()) {
            if (!each.closed || late < Fences.MAX_LATE) {
                poll(each);
                late += each.closed && each.fence != Fences.PASSED ? 1 : 0;
            }
        }
    }

    /// The newest frees that the policy lets another stream have. Where it is never, those are of streams that
    /// have ended and finished, as if the memory had gone back and been created again. Mostly without the monitor:
    /// a stream that is closing meanwhile is one that closes just after.
    ///
    /// @param waits whether the taker may be made to wait
    public long newestTakeable(StreamTimeline taker, StreamTimeline giver, boolean waits) {
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

    /// The newest frees for which no wait is needed any more.
    synchronized long coveredTime(StreamTimeline taker, StreamTimeline giver) {
        if (taker == giver) {
            return Long.MAX_VALUE;
        }
        return Math.max(giver.passedTime, taker.awaited.getOrDefault(giver, -1L));
    }

    /// Pages of streams could not be had yet: fences now, where none are under way, so that they can be had
    /// later.
    public synchronized void mark(List<StreamTimeline> givers) {
        if (reuse == PageReuse.NEVER) {
            return;
        }
        for (StreamTimeline giver : givers) {
            if (giver.newestIdle > giver.passedTime) {
                mark(giver);
            }
        }
    }

    private void mark(StreamTimeline giver) {
        if (!giver.closed && giver.fence == Fences.PASSED && fences.recordable(giver.key)) {
            record(giver);
        }
    }

    /// Whether [#precede] would make the device wait. Asks each time: a question costs less than a page.
    public synchronized boolean wouldWait(StreamTimeline taker, StreamTimeline giver, long freedAt) {
        if (freedAt <= coveredTime(taker, giver)) {
            return false;
        }
        if (giver.fenceTime < freedAt) {
            giver.untilAsked = 0;
            return !isFinished(giver);
        }
        poll(giver);
        return freedAt > giver.passedTime;
    }

    /// Makes later work of a stream come after the work on what another one freed.
    ///
    /// @param freedAt the stamp of the free
    public void precede(StreamTimeline taker, StreamTimeline giver, long freedAt) {
        if (taker != giver) {
            precedeOther(taker, giver, freedAt);
        }
    }

    private synchronized void precedeOther(StreamTimeline taker, StreamTimeline giver, long freedAt) {
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

    /// Whether the work of a stream on what was freed up to a time is known to have finished. Asks nobody.
    public synchronized boolean isPassed(StreamTimeline stream, long freedAt) {
        return freedAt <= stream.passedTime;
    }

    /// Finds out whether it [has][#isPassed]; if not, there is a fence now that tells later.
    public synchronized void ask(StreamTimeline stream, long freedAt) {
        if (freedAt > stream.passedTime) {
            poll(stream);
        }
        if (freedAt > stream.passedTime && !isFinished(stream)) {
            mark(stream);
        }
    }

    /// Asks whether all work of a stream has finished; seldom, after it had not.
    private boolean isFinished(StreamTimeline giver) {
        if (giver.closed || --giver.untilAsked >= 0 || !fences.recordable(giver.key) || !isIndependent(giver)) {
            return false;
        }
        long time = clock.advance();
        if (!fences.finished(giver.key)) {
            giver.untilAsked = PAUSE;
            return false;
        }
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
        withFences.reserve(1);
        long time = clock.advance();
        long fence = fences.record(giver.key);
        replace(giver, fence, time);
        noteAwaited(giver);
    }

    private static void noteAwaited(StreamTimeline giver) {
        giver.awaited.entrySet().removeIf(each -> isOfNoUse(each.getKey(), each.getValue()));
        giver.awaitedByFence.clear();
        giver.awaitedByFence.putAll(giver.awaited);
    }

    /// Whether nobody asks about a wait any more: else those for streams that are no more would stay until the
    /// next garbage collection, and be copied with each fence.
    private static boolean isOfNoUse(StreamTimeline awaited, long time) {
        return awaited.isGone || time <= awaited.passedTime;
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

    /// A stream ends: nothing is recorded on it later.
    ///
    /// @param end of the [fences][Fences#end], behind its last work
    public synchronized void closing(StreamTimeline ended, long end) {
        clock.advance();
        withFences.reserve(1);
        try {
            noteAwaited(ended);
        } finally {
            ended.awaited.clear();
            ended.closed = true;
            replace(ended, end, Long.MAX_VALUE); // last, since the driver may refuse to take the fence before
        }
    }

    /// Whether all work of a stream that ended has finished. Asks the driver until it has.
    public synchronized boolean hasFinished(StreamTimeline ended) {
        poll(ended);
        return ended.fence == Fences.PASSED;
    }

    /// Makes later work of a stream come after all work of one that ended, if the policy allows that.
    public synchronized boolean follow(StreamTimeline heir, StreamTimeline ended) {
        if (reuse == PageReuse.NEVER || !fences.awaitable(ended.fence)) {
            return false;
        }
        precedeOther(heir, ended, Long.MAX_VALUE);
        return true;
    }

    /// Nothing is left of a stream that ended.
    public synchronized void forget(StreamTimeline ended) {
        withFences.remove(ended);
        ended.isGone = true;
    }

    /// Releases all fences.
    public synchronized void close() {
        for (StreamTimeline timeline : withFences.copy()) {
            replace(timeline, Fences.PASSED, timeline.fenceTime);
        }
    }
}
