package io.cistern.caching;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.HashSet;
import java.util.Set;

/// Proof that the work of a stream has finished, on one device.
///
/// Streams are named by a *key*: the handle, with the two names of the legacy default stream made one, and with the
/// per-thread default stream told apart by thread (a negative number, which no handle is). A fence is recorded
/// where that is possible. A stream that was announced as closing, and the default stream of another thread, can't
/// be recorded on; then the context is synchronised, which is rare and always right.
final class Fences {
    /// Stands for a fence that needs no waiting any more.
    static final long PASSED = Long.MIN_VALUE;

    private final int device;
    private final CudaDriver driver;
    private final StreamOrder order;
    private final DeviceCounters counters;
    /// Handles announced as closing and not seen since.
    private final Set<Long> closed = new HashSet<>();
    private volatile boolean allFinished;

    Fences(int device, CudaDriver driver, StreamOrder order, DeviceCounters counters) {
        this.counters = counters;
        this.device = device;
        this.driver = driver;
        this.order = order;
    }

    /// The key of a stream handle, for the calling thread.
    static long key(long stream) {
        if (stream == Streams.PER_THREAD_DEFAULT) {
            return ~Thread.currentThread().threadId();
        }
        return stream == Streams.LEGACY_DEFAULT ? 0 : stream;
    }

    /// Marks the present end of a stream, or waits for it if it can't be marked.
    ///
    /// @return a fence for [#passed] and [#release], maybe [#PASSED]
    long record(long key) {
        if (allFinished) {
            return PASSED;
        }
        if (recordable(key)) {
            try {
                return order.record(device, key < 0 ? Streams.PER_THREAD_DEFAULT : key);
            } catch (CudaException destroyedUnannounced) {
                return synchronizeContext();
            }
        }
        return synchronizeContext();
    }

    boolean passed(long fence) {
        return fence == PASSED || order.passed(device, fence);
    }

    void await(long fence) {
        if (fence != PASSED) {
            counters.count(CacheEvent.HOST_WAIT);
            order.synchronize(device, fence);
        }
    }

    void release(long fence) {
        if (fence != PASSED) {
            order.release(device, fence);
        }
    }

    /// Whether all work that was given to a stream until now has finished.
    ///
    /// @param wait whether to wait until it has
    boolean quiet(long key, boolean wait) {
        if (!wait && !recordable(key)) {
            return false;
        }
        long fence = record(key);
        try {
            if (wait) {
                await(fence);
            }
            return wait || passed(fence);
        } finally {
            release(fence);
        }
    }

    /// Waits for all work of the context, after which none comes: no stream is named any more.
    void finishAll() {
        synchronizeContext();
        allFinished = true;
    }

    synchronized void closed(long key) {
        closed.add(key);
    }

    /// The handle is in use (again).
    synchronized void opened(long key) {
        closed.remove(key);
    }

    private synchronized boolean recordable(long key) {
        return key < 0 ? key == ~Thread.currentThread().threadId() : !closed.contains(key);
    }

    private long synchronizeContext() {
        counters.count(CacheEvent.SYNCHRONIZE_ALL);
        try {
            driver.devices().synchronize(device);
        } catch (CudaException dead) {
            return PASSED; // nothing runs any more in a context that failed
        }
        return PASSED;
    }
}
