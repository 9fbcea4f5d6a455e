package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Streams;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/// The driver's pools that serve one device: one, opened when the device is first used, or one a stream.
///
/// The pool of a stream that ended serves the next stream without one: there are never more pools than streams at a
/// time, and memory that the ended one left is not lost. Which frees have completed is the driver's business.
///
/// **Threads.** Any.
final class DevicePools {
    static final long NO_POOL = 0;

    private final CudaDriver driver;
    private final int device;
    private final AsyncOptions options;

    /// The only pool; 0 before it is opened, and always where each stream has one.
    private volatile long shared;

    private final List<DriverPool> open = new CopyOnWriteArrayList<>();
    private final StreamPools byStream = new StreamPools();
    private final List<Long> spare = new java.util.ArrayList<>();

    DevicePools(CudaDriver driver, int device, AsyncOptions options) {
        this.driver = driver;
        this.device = device;
        this.options = options;
    }

    /// The handle of the pool for an allocation on a stream.
    long handle(long stream) {
        long pool = shared;
        return pool != NO_POOL ? pool : find(stream == Streams.LEGACY_DEFAULT ? 0 : stream);
    }

    private long find(long stream) {
        long pool = options.perStream() ? byStream.find(stream) : NO_POOL;
        return pool != NO_POOL ? pool : assign(stream);
    }

    private synchronized long assign(long stream) {
        if (!options.perStream()) {
            if (shared == NO_POOL) {
                shared = open(stream);
            }
            return shared;
        }
        long pool = byStream.find(stream);
        if (pool == NO_POOL) {
            pool = spare.isEmpty() ? open(stream) : spare.removeLast();
            byStream.put(stream, pool);
        }
        return pool;
    }

    private long open(long stream) {
        DriverPool pool = DriverPool.open(driver, device, options);
        try {
            if (options.initialBytes() > 0) {
                pool.prime(driver, options.initialBytes(), stream);
            }
        } catch (RuntimeException | Error failure) {
            pool.close();
            throw failure;
        }
        open.add(pool);
        return pool.handle;
    }

    /// Keeps the pool of a stream that ends for the next one.
    synchronized void streamClosing(long stream) {
        long pool = byStream.remove(stream);
        if (pool != NO_POOL) {
            spare.add(pool);
        }
    }

    /// Those that are open.
    List<DriverPool> all() {
        return open;
    }

    /// An attribute, added up.
    long sum(PoolAttribute attribute) {
        long sum = 0;
        for (DriverPool pool : open) {
            sum += pool.attribute(attribute);
        }
        return sum;
    }

    /// Ends own pools, and sets others back. A context that died took its pools with it.
    void close() {
        shared = NO_POOL;
        for (DriverPool pool : open) {
            open.remove(pool);
            try {
                pool.close();
            } catch (CudaException failure) {
                if (!failure.result().endsContext()) {
                    throw failure;
                }
            }
        }
    }
}
