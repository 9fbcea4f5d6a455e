package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.Failures;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Holds the driver's pools that serve one device: one pool, opened when the device is first used; or one
/// per stream; or one for small blocks and one for all other blocks.
///
/// The pool of an ended stream serves the next stream without one. So there are never more pools than streams
/// at a time, and memory that the ended stream left is not lost. The driver itself tracks which frees have
/// completed.
///
/// **Threads.** Any.
final class DevicePools {
    private static final long NO_POOL = 0;
    private static final DriverPool[] NONE = {};

    /// Keys instead of a stream if pools go by size; no stream has these handles.
    private static final long SMALL = -1;

    private static final long LARGE = -2;
    private static final long ALL = -3;

    private final CudaDriver driver;
    private final int device;
    private final AsyncOptions options;

    /// The only pool; 0 before it is opened, and always if there are several.
    private volatile long only;

    /// Finds the pools' thresholds; null if they are fixed.
    private final @Nullable AdaptiveRelease adaptive;

    /// Replaced when a pool is opened and when all are closed; the array itself never changes.
    private volatile DriverPool[] open = NONE;

    /// Made in advance: closing needs no Java heap.
    private final Failures failures = new Failures();

    /// Guarded by this.
    private boolean closed;

    /// The pool of each stream, or of each key. Changed under the monitor.
    private final AddressTable<StreamPool> byStream = new AddressTable<>();

    /// Pools that serve no stream now. Guarded by this.
    private final List<Long> spare = new ArrayList<>();

    /// Devices that can use the memory of all pools. Guarded by this.
    private final List<Integer> peers = new ArrayList<>();

    private static final class StreamPool extends AddressTable.Entry {
        final long pool;

        StreamPool(long stream, long pool) {
            super(stream);
            this.pool = pool;
        }
    }

    DevicePools(CudaDriver driver, int device, AsyncOptions options) {
        this.driver = driver;
        this.device = device;
        this.options = options;
        this.adaptive = options.adaptive() ? new AdaptiveRelease(driver) : null;
    }

    /// Returns the handle of the pool for an allocation on a stream.
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
        StreamPool known = byStream.find(key);
        return known != null ? known.pool : assign(key, stream);
    }

    /// @throws IllegalStateException if the allocator is closed
    private synchronized long assign(long key, long stream) {
        if (closed) {
            throw new IllegalStateException("the allocator is closed");
        }
        StreamPool known = byStream.find(key);
        if (known != null) {
            return known.pool;
        }
        if (spare.isEmpty()) {
            open(key, stream);
        }
        long pool = spare.getLast();
        byStream.add(new StreamPool(key, pool));
        spare.removeLast();
        only = key == ALL ? pool : NO_POOL;
        return pool;
    }

    /// Opens a pool and adds it to the spare ones.
    private void open(long key, long stream) {
        DriverPool pool = DriverPool.open(driver, device, options);
        try {
            peers.forEach(pool::openTo);
            if (options.initialBytes() > 0 && key != SMALL) {
                prime(pool, stream);
            }
            DriverPool[] more = Arrays.copyOf(open, open.length + 1);
            more[open.length] = pool;
            if (adaptive != null) {
                adaptive.watch(pool);
            }
            spare.add(pool.bareHandle());
            open = more;
        } catch (RuntimeException | Error failure) {
            pool.close();
            throw failure;
        }
    }

    private void prime(DriverPool pool, long stream) {
        try {
            pool.prime(driver, options.initialBytes(), stream);
        } catch (CudaException failure) {
            if (failure.result() != CudaResult.OUT_OF_MEMORY) {
                throw failure;
            }
            throw new DeviceOutOfMemoryException(
                    options.initialBytes(),
                    device,
                    AsyncOption.INITIAL_SIZE + "=" + options.initialBytes() + " is obtained with the first request, but"
                            + " is not available: lower it, or free memory",
                    failure);
        }
    }

    /// Lets another device use all pools, and those that are opened later.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses; then all pools are as before
    synchronized void openTo(int peer) {
        if (peers.contains(peer)) {
            return;
        }
        peers.add(peer);
        try {
            for (DriverPool pool : open) {
                pool.openTo(peer);
            }
        } catch (RuntimeException | Error failure) {
            peers.removeLast();
            for (DriverPool pool : open) {
                pool.closeTo(peer, failure);
            }
            throw failure;
        }
    }

    /// Reports an allocation to the adaptive thresholds.
    void called(long byteSize) {
        AdaptiveRelease release = adaptive;
        if (release != null) {
            release.called(byteSize);
        }
    }

    /// Reports a free to the adaptive thresholds.
    void freed(long byteSize) {
        AdaptiveRelease release = adaptive;
        if (release != null) {
            release.freed(byteSize);
        }
    }

    /// Gives back memory that adaptive thresholds no longer hold.
    ///
    /// @return the number of bytes given back
    long giveBackUnheld() {
        return adaptive == null ? 0 : adaptive.giveBack();
    }

    /// Called when statistics are read; if the program has stopped calling, memory may be released.
    void figuresAreRead() {
        if (adaptive != null) {
            adaptive.lookIfSilent();
        }
    }

    /// Keeps the pool of an ending stream for the next stream.
    synchronized void streamClosing(long stream) {
        StreamPool ended = byStream.find(stream);
        if (ended != null) {
            spare.add(ended.pool);
            byStream.remove(ended);
        }
    }

    /// Returns the pools that are open now.
    DriverPool[] all() {
        return open;
    }

    /// Returns the sum of an attribute over all pools. The adaptive threshold resets the pools' own high-water
    /// mark of use, so with it the sum comes from its records.
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

    /// Restarts a high-water mark at the present value, except in pools of others.
    void resetMark(PoolAttribute high) {
        if (adaptive != null && high == PoolAttribute.USED_HIGH) {
            adaptive.resetUsedHigh();
        } else {
            for (DriverPool pool : open) {
                pool.resetMark(high);
            }
        }
    }

    /// Destroys own pools and restores the settings of others, even if some of that fails. A context that died
    /// has taken its pools with it.
    void close() {
        for (DriverPool pool : closing()) {
            failures.gather(pool.closing);
        }
        failures.rethrow();
    }

    /// Forbids opening further pools, and hands the open ones to the caller to close.
    private synchronized DriverPool[] closing() {
        DriverPool[] all = open;
        closed = true;
        open = NONE;
        only = NO_POOL;
        byStream.clear();
        return all;
    }
}
