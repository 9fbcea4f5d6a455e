package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Streams;
import io.cistern.internal.names.Failures;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/// The driver's pools that serve one device: one, opened when the device is first used; or one a stream; or one for
/// small blocks and one for the others.
///
/// The pool of a stream that ended serves the next stream without one: there are never more pools than streams at a
/// time, and memory that the ended one left is not lost. Which frees have completed is the driver's business.
///
/// **Threads.** Any.
final class DevicePools {
    private static final long NO_POOL = 0;

    /// In place of a stream, where pools go by size; streams have other handles.
    private static final long SMALL = -1;

    private static final long LARGE = -2;
    private static final long ALL = -3;

    private final CudaDriver driver;
    private final int device;
    private final AsyncOptions options;

    /// The only pool; 0 before it is opened, and always where there are several.
    private volatile long only;

    /// Finds the pools' thresholds; null if they are fixed.
    private final @Nullable AdaptiveRelease adaptive;

    private final List<DriverPool> open = new CopyOnWriteArrayList<>();
    private final StreamPools byStream = new StreamPools();
    private final List<Long> spare = new ArrayList<>();

    /// Devices that all pools are open to. Guarded by this.
    private final List<Integer> peers = new ArrayList<>();

    DevicePools(CudaDriver driver, int device, AsyncOptions options) {
        this.driver = driver;
        this.device = device;
        this.options = options;
        this.adaptive = options.adaptive() ? new AdaptiveRelease(driver) : null;
    }

    /// The handle of the pool for an allocation on a stream.
    long handle(long byteSize, long stream) {
        long pool = only;
        return pool != NO_POOL ? pool : find(key(byteSize, stream), stream);
    }

    private long key(long byteSize, long stream) {
        if (options.perStream()) {
            return stream == Streams.LEGACY_DEFAULT ? 0 : stream;
        }
        return options.onePool() ? ALL : byteSize <= options.smallBytes() ? SMALL : LARGE;
    }

    private long find(long key, long stream) {
        long pool = byStream.find(key);
        return pool != NO_POOL ? pool : assign(key, stream);
    }

    private synchronized long assign(long key, long stream) {
        long pool = byStream.find(key);
        if (pool == NO_POOL) {
            pool = spare.isEmpty() ? open(key, stream) : spare.removeLast();
            byStream.put(key, pool);
            only = key == ALL ? pool : NO_POOL;
        }
        return pool;
    }

    private long open(long key, long stream) {
        DriverPool pool = DriverPool.open(driver, device, options);
        try {
            peers.forEach(pool::openTo);
            if (options.initialBytes() > 0 && key != SMALL) {
                pool.prime(driver, options.initialBytes(), stream);
            }
        } catch (RuntimeException | Error failure) {
            pool.close();
            throw failure;
        }
        open.add(pool);
        if (adaptive != null) {
            adaptive.watch(pool);
        }
        return pool.handle;
    }

    /// Opens all pools to another device, those that are opened later too.
    ///
    /// @throws CudaException if the driver refuses; then all are as before
    synchronized void openTo(int peer) {
        if (peers.contains(peer)) {
            return;
        }
        try {
            open.forEach(pool -> pool.openTo(peer));
            peers.add(peer);
        } catch (CudaException refusal) {
            open.forEach(pool -> pool.closeTo(peer, refusal));
            throw refusal;
        }
    }

    /// Tells of an allocation.
    void called(long byteSize) {
        AdaptiveRelease release = adaptive;
        if (release != null) {
            release.called(byteSize);
        }
    }

    /// Tells of a free.
    void freed(long byteSize) {
        AdaptiveRelease release = adaptive;
        if (release != null) {
            release.freed(byteSize);
        }
    }

    /// Gives back what adaptive thresholds do not hold any more.
    ///
    /// @return how many bytes went
    long giveBackUnheld() {
        return adaptive == null ? 0 : adaptive.giveBack();
    }

    /// Tells that somebody reads figures; of a program that is silent, memory may go back.
    void figuresAreRead() {
        if (adaptive != null) {
            adaptive.lookIfSilent();
        }
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

    /// An attribute, added up. The high-water mark of use is not the pool's own where the adaptive threshold resets
    /// that.
    long sum(PoolAttribute attribute) {
        if (adaptive != null && attribute == PoolAttribute.USED_HIGH) {
            return adaptive.usedHighBytes();
        }
        long sum = 0;
        for (DriverPool pool : open) {
            sum += pool.attribute(attribute);
        }
        return sum;
    }

    /// Lets a high-water mark begin at the present value, but for those of pools of others.
    void resetMark(PoolAttribute high) {
        if (adaptive != null && high == PoolAttribute.USED_HIGH) {
            adaptive.resetUsedHigh();
        } else {
            open.forEach(pool -> pool.resetMark(high));
        }
    }

    /// Ends own pools, and sets others back, whatever of that fails. A context that died took its pools with it.
    void close() {
        only = NO_POOL;
        Failures failures = new Failures();
        open.forEach(pool -> failures.gather(() -> close(pool)));
        open.clear();
        failures.rethrow();
    }

    private static void close(DriverPool pool) {
        try {
            pool.close();
        } catch (CudaException failure) {
            if (!failure.result().endsContext()) {
                throw failure;
            }
        }
    }
}
