package io.cistern.caching.internal.order;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Proves that the work of a stream on one device has finished.
///
/// A stream is named by a *key*: its handle, with one key for the two names of the legacy default stream, and
/// one key per thread for the per-thread default stream (a negative number, which no handle is). A stream that
/// was announced as closing, and the default stream of another thread, can't be named; a fence for it then
/// comes after all streams of the context.
///
/// **Ends of streams.** A reused handle names another stream. So at the announced end of a stream
///
/// - its key is added to `closed`, and nothing is recorded by that key until it is [opened][#opened] again, by
///   an allocation or a recorded use: these require an existing stream. A free may name either stream. So
///   it opens nothing, and while the first one's work runs, a fence for either comes after all streams;
/// - live blocks used on it, and the memory that it leaves, get an *end* instead of the key: a unique number
///   that stands for the one fence after the stream's last work, until that has passed;
/// - blocks freed on it get their fences, and its shards leave the table of shards; a stream that takes one
///   over, the successor or another one, comes after that end.
///
/// ```
/// keys    handle ≥ 0      ~thread id, down to −2^62      end, below −2^62      PASSED = −2^63
/// ```
public final class Fences {
    /// A fence, and the number of host threads that wait for it; it is kept while there are any.
    private static final class End {
        long fence;
        int waiting;
    }

    /// A stream that ended.
    ///
    /// @param end the [end][#end] after its last work
    /// @param reopened whether a later stream has the handle
    private record Closed(long end, boolean reopened) {}

    /// Stands for a fence that has passed.
    public static final long PASSED = Long.MIN_VALUE;

    /// Ends are below this, the keys of threads above: no thread id is that high.
    private static final long FIRST_END = -(1L << 62);

    /// Streams end in about the order in which they finish. So few have finished after this many unfinished
    /// ones, and each query is a driver call.
    public static final int MAX_LATE = 4;

    private final int device;
    private final CudaDriver driver;
    private final StreamOrder order;
    private final DeviceCounters counters;

    /// The streams that use live blocks, and blocks whose frees have no fence yet.
    public final RecordedUses uses = new RecordedUses();
    /// Keys that were announced as closing; at most until they have been opened again and the end has passed.
    private final Map<Long, Closed> closed = new ConcurrentHashMap<>();
    /// The fences of ends that have not passed, in the order of the ends. Guarded by itself.
    private final Map<Long, End> ends = new LinkedHashMap<>();

    private long lastEnd = FIRST_END;
    private volatile boolean allFinished;

    public Fences(int device, CudaDriver driver, StreamOrder order, DeviceCounters counters) {
        this.counters = counters;
        this.device = device;
        this.driver = driver;
        this.order = order;
    }

    /// Returns the key of a stream handle, for the calling thread.
    public static long key(long stream) {
        if (stream == Streams.PER_THREAD_DEFAULT) {
            return ~Thread.currentThread().threadId();
        }
        return stream == Streams.LEGACY_DEFAULT ? 0 : stream;
    }

    /// Records a fence after all work of a stream so far; if the stream can't be named, after all streams. An
    /// end is its own fence.
    ///
    /// @return a fence for [#passed] and [#release], perhaps [#PASSED]
    public long record(long key) {
        if (allFinished) {
            return PASSED;
        }
        if (isEnd(key)) {
            return key;
        }
        return recordable(key) ? order.record(device, stream(key)) : order.recordAll(device);
    }

    /// Records a fence after the work before a free, which may name the former stream of a handle.
    ///
    /// @param key the key in the free, or an end
    public long recordFree(long key) {
        Closed last = closed.isEmpty() ? null : closed.get(key);
        return last == null || endPassed(last.end) || allFinished ? record(key) : order.recordAll(device);
    }

    private static long stream(long key) {
        return key < 0 ? Streams.PER_THREAD_DEFAULT : key;
    }

    private static boolean isEnd(long key) {
        return key < FIRST_END && key != PASSED;
    }

    public boolean passed(long fence) {
        return isEnd(fence) ? endPassed(fence) : fence == PASSED || allFinished || order.passed(device, fence);
    }

    /// Whether [#finished] is conclusive for a [recordable][#recordable] stream.
    boolean independent(long key) {
        return key > 0 && order.independent(device, key);
    }

    /// Whether all work given so far to an [independent][#independent], [recordable][#recordable] stream has
    /// finished, as far as one query shows.
    boolean finished(long key) {
        return allFinished || order.finished(device, key);
    }

    /// Makes the host wait for a fence.
    ///
    /// @return false if the fence can't be waited for while streams are captured
    public boolean await(long fence) {
        try {
            if (isEnd(fence)) {
                awaitEnd(fence);
            } else {
                awaitFence(fence);
            }
            return true;
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                return false;
            }
            throw failure;
        }
    }

    /// Whether a stream can be made to wait for a fence.
    boolean awaitable(long fence) {
        if (!isEnd(fence)) {
            return fence == PASSED || order.awaitable(device, fence);
        }
        synchronized (ends) {
            End end = ends.get(fence);
            return end == null || awaitable(end.fence);
        }
    }

    /// Makes later work of a stream wait for a fence, on the device. A per-thread default stream must be
    /// the calling thread's.
    public void await(long key, long fence) {
        if (isEnd(fence)) {
            synchronized (ends) {
                End end = ends.get(fence);
                if (end != null) {
                    await(key, end.fence);
                }
            }
        } else if (fence != PASSED) {
            order.await(device, stream(key), fence);
        }
    }

    /// Releases a fence. An end, for which other threads may wait too, is released when it has passed.
    public void release(long fence) {
        if (fence != PASSED && !isEnd(fence)) {
            order.release(device, fence);
        }
    }

    /// Records the end of a stream, and of those that had its handle before.
    ///
    /// @return a number that any number of blocks may use instead of the stream's key; once it has passed, it
    ///     has passed for all
    public long end(long key) {
        End made = new End();
        made.fence = recordFree(key);
        synchronized (ends) {
            long end = --lastEnd;
            if (allFinished) {
                release(made.fence); // the last `releasePassed` may be over
            } else if (made.fence != PASSED) {
                try {
                    ends.put(end, made);
                } catch (OutOfMemoryError failure) {
                    release(made.fence);
                    throw failure;
                }
            }
            return end;
        }
    }

    /// Releases the fences of ends that have passed. Stops early if many of the oldest have not.
    public void releasePassed() {
        synchronized (ends) {
            int late = 0;
            for (Iterator<Long> oldest = List.copyOf(ends.keySet()).iterator(); oldest.hasNext() && late < MAX_LATE; ) {
                late += endPassed(oldest.next()) ? 0 : 1;
            }
        }
    }

    private boolean endPassed(long end) {
        synchronized (ends) {
            End found = ends.get(end);
            boolean passed = found == null || passed(found.fence);
            if (found != null && passed && found.waiting == 0) {
                forget(end, found);
            }
            return passed;
        }
    }

    /// Makes the host wait, without a lock: another thread may have to act first.
    private void awaitEnd(long end) {
        End found;
        synchronized (ends) {
            found = ends.get(end);
            if (found == null || allFinished) {
                return;
            }
            found.waiting++;
        }
        boolean passed = false;
        try {
            awaitFence(found.fence);
            passed = true;
        } finally {
            synchronized (ends) {
                if (--found.waiting == 0 && passed) {
                    forget(end, found);
                }
            }
        }
    }

    private void awaitFence(long fence) {
        if (fence != PASSED && !allFinished) {
            counters.count(CacheEvent.HOST_WAIT);
            order.synchronize(device, fence);
        }
    }

    private void forget(long end, End found) {
        ends.remove(end);
        release(found.fence);
    }

    /// Whether all work given to a stream so far has finished.
    public boolean quiet(long key) {
        if (allFinished || !recordable(key)) {
            return allFinished; // once all work has finished, also for ended streams
        }
        long fence = record(key);
        try {
            return passed(fence);
        } finally {
            release(fence);
        }
    }

    /// Waits for all work of the context; no stream may be named afterwards. If the driver refuses a few times, the
    /// caller has to wait for each stream, and keeps the addresses of those that have ended.
    public void finishAll() {
        counters.count(CacheEvent.SYNCHRONIZE_ALL);
        try {
            DeadContext.insist(() -> driver.devices().synchronize(device));
            allFinished = true;
        } catch (CudaException refusal) {
            if (refusal.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                throw refusal;
            }
        }
    }

    /// Records that a stream ends. A thread's key is not kept: it is never reused, and only that thread
    /// could use it.
    ///
    /// @param end its [end][#end]
    public void closed(long key, long end) {
        if (key >= 0) {
            closed.put(key, new Closed(end, false));
        }
    }

    /// Records that a handle is in use (again).
    public void opened(long key) {
        Closed last = closed.get(key);
        if (last != null && endPassed(last.end)) {
            closed.remove(key, last);
        } else if (last != null && !last.reopened) {
            closed.replace(key, last, new Closed(last.end, true));
        }
    }

    /// Whether the calling thread can record a fence on a stream.
    boolean recordable(long key) {
        if (key < 0) {
            return key == ~Thread.currentThread().threadId() && order.recordable(device, Streams.PER_THREAD_DEFAULT);
        }
        return (closed.isEmpty() || !isClosed(key)) && order.recordable(device, key);
    }

    private boolean isClosed(long key) {
        Closed last = closed.get(key);
        return last != null && !last.reopened;
    }
}
