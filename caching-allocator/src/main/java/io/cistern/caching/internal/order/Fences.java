package io.cistern.caching.internal.order;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Proof that the work of a stream has finished, on one device.
///
/// Streams are named by a *key*: the handle, with the two names of the legacy default stream made one, and with
/// the per-thread default stream told apart by thread (a negative number, which no handle is). A stream that was
/// announced as closing, and the default stream of another thread, can't be named; then the fence is behind all
/// streams of the context.
///
/// **Ends of streams.** A handle that comes again is another stream. So at the announced end of one
///
/// - its key is put down in `closed`, and nothing is recorded by that key until it is [opened][#opened] again: by
/// an allocation or a recorded use, which only a stream that exists can ask for. A free may name either stream,
/// so it opens nothing;
/// - live blocks used on it, and what it leaves, get an *end* in place of the key: a number that is given once
/// and stands for the one fence behind the stream's last work, until that has passed;
/// - blocks freed on it get their fences, and its shards leave the table of shards: who
/// inherits one, the successor or another stream, comes after that end.
///
/// ```
/// keys    handle ≥ 0      ~thread id, down to −2^62      end, below −2^62      PASSED = −2^63
/// ```
public final class Fences {
    /// A fence, and how many wait for it on the host at this moment: so long it stays.
    private static final class End {
        long fence;
        int waiting;
    }

    /// Stands for a fence that needs no waiting any more.
    public static final long PASSED = Long.MIN_VALUE;

    /// Ends are below, the keys of threads above: no thread has so high an id.
    private static final long FIRST_END = -(1L << 62);

    /// Streams end in about the order in which they finish: behind some that have not there are few that have,
    /// and each question is a driver call.
    public static final int MAX_LATE = 4;

    private final int device;
    private final CudaDriver driver;
    private final StreamOrder order;
    private final DeviceCounters counters;

    /// What live blocks, and those whose frees have no fences yet, are used on.
    public final RecordedUses uses = new RecordedUses();
    /// Keys announced as closing and not seen since.
    private final Set<Long> closed = ConcurrentHashMap.newKeySet();
    /// The fences of ends that have not passed, in their order. Guarded by itself.
    private final Map<Long, End> ends = new LinkedHashMap<>();

    private long lastEnd = FIRST_END;
    private volatile boolean allFinished;

    public Fences(int device, CudaDriver driver, StreamOrder order, DeviceCounters counters) {
        this.counters = counters;
        this.device = device;
        this.driver = driver;
        this.order = order;
    }

    /// The key of a stream handle, for the calling thread.
    public static long key(long stream) {
        if (stream == Streams.PER_THREAD_DEFAULT) {
            return ~Thread.currentThread().threadId();
        }
        return stream == Streams.LEGACY_DEFAULT ? 0 : stream;
    }

    /// Marks the present end of a stream, or that of all streams if it can't be marked. An end marks itself.
    ///
    /// @return a fence for [#passed] and [#release], maybe [#PASSED]
    public long record(long key) {
        if (allFinished) {
            return PASSED;
        }
        if (isEnd(key)) {
            return key;
        }
        return recordable(key) ? order.record(device, stream(key)) : order.recordAll(device);
    }

    private static long stream(long key) {
        return key < 0 ? Streams.PER_THREAD_DEFAULT : key;
    }

    private static boolean isEnd(long key) {
        return key < FIRST_END && key != PASSED;
    }

    public boolean passed(long fence) {
        return isEnd(fence) ? endPassed(fence) : fence == PASSED || order.passed(device, fence);
    }

    /// Whether [#finished] can tell of a stream. Of one that can be [recorded on][#recordable].
    boolean independent(long key) {
        return key > 0 && order.independent(device, key);
    }

    /// Whether all work given to an [independent][#independent] stream until now has finished, as far as one
    /// question tells. Of one that can be [recorded on][#recordable].
    boolean finished(long key) {
        return allFinished || order.finished(device, key);
    }

    /// Waits on the host for a fence.
    ///
    /// @return false for a fence that can't be waited for while streams are captured
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

    /// Makes later work of a stream wait for a fence, on the device. The stream is the calling thread's, if it
    /// has a default stream of its own.
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

    /// Releases a fence; an end, which others may wait for too, goes when it has passed.
    public void release(long fence) {
        if (fence != PASSED && !isEnd(fence)) {
            order.release(device, fence);
        }
    }

    /// Marks the end of a stream.
    ///
    /// @return what stands for it from now on, for as many as like: whoever sees that it has passed, sees it
    /// for all
    public long end(long key) {
        End made = new End();
        made.fence = record(key);
        synchronized (ends) {
            long end = --lastEnd;
            if (made.fence != PASSED) {
                put(end, made);
            }
            return end;
        }
    }

    private void put(long end, End made) {
        try {
            ends.put(end, made);
        } catch (OutOfMemoryError failure) {
            release(made.fence);
            throw failure;
        }
    }

    /// Releases the fences of ends that have passed, but for some where many of the oldest have not.
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
            boolean passed = found == null || allFinished || passed(found.fence);
            if (found != null && passed && found.waiting == 0) {
                forget(end, found);
            }
            return passed;
        }
    }

    /// Waits on the host, with no lock: the host may have to do something else before.
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
        if (fence != PASSED) {
            counters.count(CacheEvent.HOST_WAIT);
            order.synchronize(device, fence);
        }
    }

    private void forget(long end, End found) {
        ends.remove(end);
        release(found.fence);
    }

    /// Whether all work that was given to a stream until now has finished.
    public boolean quiet(long key) {
        if (!recordable(key)) {
            return false;
        }
        long fence = record(key);
        try {
            return passed(fence);
        } finally {
            release(fence);
        }
    }

    /// Waits for all work of the context, after which none comes: no stream is named any more. If the driver
    /// refuses that, each stream is to be waited for.
    public void finishAll() {
        counters.count(CacheEvent.SYNCHRONIZE_ALL);
        try {
            driver.devices().synchronize(device);
            allFinished = true;
        } catch (CudaException refusal) {
            if (refusal.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                throw refusal;
            }
            allFinished = refusal.result().endsContext();
        }
    }

    /// The stream ends. The key of a thread never comes again, and only that thread could record by it.
    public void closed(long key) {
        if (key >= 0) {
            closed.add(key);
        }
    }

    /// The handle is in use (again).
    public void opened(long key) {
        closed.remove(key);
    }

    /// Whether the calling thread can record a fence on a stream.
    boolean recordable(long key) {
        if (key < 0) {
            return key == ~Thread.currentThread().threadId() && order.recordable(device, Streams.PER_THREAD_DEFAULT);
        }
        return (closed.isEmpty() || !closed.contains(key)) && order.recordable(device, key);
    }
}
