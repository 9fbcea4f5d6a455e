package io.cistern.caching.internal.order;

import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;

/// The known progress of one stream; a later stream of the same handle has another timeline. Guarded by
/// [CrossStreamOrder].
///
/// **Time** is that of the device's miss clock, a counter that advances at each survey for a miss, each query and
/// each fence. Frees are stamped with it: a fence recorded after the clock left time `t` covers all frees stamped
/// `t` or less, and of two idle pages the one with the lower stamp has been idle for longer.
public final class StreamTimeline {
    /// See [Fences#key].
    public final long key;

    /// The thread whose default stream this is, if any.
    private final @Nullable WeakReference<Thread> owner;

    /// A fence on the stream that covers all frees up to [#fenceTime]; [Fences#PASSED] if there is none.
    long fence = Fences.PASSED;

    long fenceTime = -1;
    /// The stream's work on memory freed up to this time has finished. At first: the time before the stream began.
    long passedTime;
    /// Whether the driver can [report][Fences#independent] that the stream's work has finished; null if not
    /// known yet.
    @Nullable
    Boolean independent;

    /// The number of queries to skip.
    int untilAsked;
    /// Whether the stream has ended; its fence then covers all its frees.
    volatile boolean closed;
    /// Whether all shards of the stream have been dropped or have a successor.
    boolean isGone;
    /// The number of streams that had ended when this one did, itself included; guarded by `DeviceShards`.
    public int endNumber;
    /// The times up to which this stream waits for other streams, as long as anything of them is left.
    final Map<StreamTimeline, Long> awaited = new WeakHashMap<>();

    /// The value of [#awaited] when the fence was recorded: a stream that waits for the fence waits for that too.
    final Map<StreamTimeline, Long> awaitedByFence = new WeakHashMap<>();

    // Scratch of `PageSurvey`, guarded by the lock of the `PageTable`.

    /// The current survey may take pages that were freed up to this time.
    public long newestTakeable = -1;

    public long surveyNumber;

    /// @param key the stream's key; that of a thread must be the calling thread's
    /// @param now the current time; nothing was freed on the stream before
    public StreamTimeline(long key, long now) {
        this.key = key;
        this.owner = key < 0 ? new WeakReference<>(Thread.currentThread()) : null;
        this.passedTime = now - 1;
    }

    /// Whether it is the default stream of a thread that has ended.
    public boolean isOrphan() {
        Thread thread = owner == null ? null : owner.get();
        return owner != null && (thread == null || !thread.isAlive());
    }
}
