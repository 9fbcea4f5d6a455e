package io.cistern.caching.internal.order;

import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;

/// How far one stream is known to have got, in the time of the [MissClock], over one life of the stream: a later
/// stream of the same handle has another timeline. Guarded by [CrossStreamOrder].
public final class StreamTimeline {
    /// See [Fences#key].
    public final long key;

    /// Whether so many streams had ended before that this one may not last, either. Then what it leaves is kept for a
    /// later stream.
    public final boolean oneOfMany;

    /// Whose default stream it is, if it is a thread's.
    private final @Nullable WeakReference<Thread> owner;

    /// A fence on the stream that covers everything freed up to [#fenceTime], or [Fences#PASSED] if there is
    /// none.
    long fence = Fences.PASSED;

    long fenceTime = -1;
    /// The stream's work on what was freed up to then has finished: all of it, before the stream began.
    long passedTime;
    /// Whether the driver can be [asked][Fences#independent] if the stream's work has finished; null if nobody
    /// knows yet.
    @Nullable
    Boolean independent;

    /// So often more, nobody asks.
    int untilAsked;
    /// The stream has ended; its fence covers all that was ever freed.
    volatile boolean closed;
    /// Nothing of it is left: whoever asked about it asks about its heir.
    boolean isGone;
    /// How many streams had ended then, with this one; guarded by `RecycledShards`.
    public int endNumber;
    /// For other streams, as long as anything of them is left, the time up to which this one waits for them.
    final Map<StreamTimeline, Long> awaited = new WeakHashMap<>();

    /// What [#awaited] was when the fence was recorded: who waits for the fence waits for that too.
    final Map<StreamTimeline, Long> awaitedByFence = new WeakHashMap<>();

    /// What the look under way may take of it, by the time of the free. Guarded by the lock of the
    /// `PageTable`.
    public long newestTakeable = -1;
    /// The number of that look.
    public long seenIn;

    /// When a page of it became idle last. Guarded by the short locks of its shards; read in a look without them.
    public long newestIdle = -1;

    /// @param key if it is that of a thread, the calling one's
    /// @param now the time: nothing is freed on the stream before
    public StreamTimeline(long key, long now, boolean oneOfMany) {
        this.key = key;
        this.owner = key < 0 ? new WeakReference<>(Thread.currentThread()) : null;
        this.oneOfMany = oneOfMany;
        this.passedTime = now - 1;
    }

    /// Whether it is the default stream of a thread that has ended.
    public boolean isOrphan() {
        Thread thread = owner == null ? null : owner.get();
        return owner != null && (thread == null || !thread.isAlive());
    }
}
