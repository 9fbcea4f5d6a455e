package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.internal.names.Failures;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/// Hands out a few streams of one device in turn, like PyTorch's pool of 32 streams, to code that often
/// needs a stream and can share it with other code. A stream is created when it is first handed out and
/// lives as long as the pool, so that allocators can reuse the memory that they keep for it.
///
/// **Threads.** Any thread may call any method at any time.
public final class CudaStreamPool implements AutoCloseable {
    private final DeviceMemory memory;
    private final int device;
    private final int priority;
    private final AtomicReferenceArray<@Nullable CudaStream> streams;
    private final AtomicInteger turn = new AtomicInteger();
    private volatile boolean closed;

    private CudaStreamPool(DeviceMemory memory, int device, int priority, int count) {
        this.memory = memory;
        this.device = device;
        this.priority = priority;
        streams = new AtomicReferenceArray<>(count);
    }

    /// Opens a pool of streams with the default priority.
    ///
    /// @param count the maximum number of streams, at least 1
    /// @throws IllegalArgumentException if `count` is less than 1
    public static CudaStreamPool open(DeviceMemory memory, int device, int count) {
        return open(memory, device, count, 0);
    }

    /// Opens a pool of streams with a priority.
    ///
    /// @param count the maximum number of streams, at least 1
    /// @param priority see [CudaStream#open(DeviceMemory, int, int)]
    /// @throws IllegalArgumentException if `count` is less than 1
    public static CudaStreamPool open(DeviceMemory memory, int device, int count, int priority) {
        if (count < 1) {
            throw new IllegalArgumentException("count must be at least 1, not " + count);
        }
        return new CudaStreamPool(memory, device, priority, count);
    }

    /// Returns the next stream, which other callers share. The caller must not close it.
    ///
    /// @throws IllegalStateException if the pool is closed
    /// @throws CudaException if the driver refuses to create a stream
    public CudaStream next() {
        int at = Math.floorMod(turn.getAndIncrement(), streams.length());
        CudaStream present = streams.get(at);
        return !closed && present != null ? present : make(at);
    }

    private synchronized CudaStream make(int at) {
        if (closed) {
            throw new IllegalStateException("the pool of streams of device " + device + " is closed");
        }
        CudaStream present = streams.get(at);
        if (present == null) {
            present = CudaStream.open(memory, device, priority);
            streams.set(at, present);
        }
        return present;
    }

    /// Announces the ends of the streams and closes them. Closing twice does nothing.
    ///
    /// @throws CudaException if the driver refuses to destroy a stream. All others are closed then; close
    ///     the pool again to retry
    @Override
    public synchronized void close() {
        closed = true;
        Failures failures = new Failures();
        for (int i = 0; i < streams.length(); i++) {
            CudaStream stream = streams.get(i);
            if (stream != null) {
                failures.gather(stream::close);
            }
        }
        failures.rethrow();
    }
}
