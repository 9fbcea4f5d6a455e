package io.cistern.async;

import io.cistern.async.internal.PoolHandle;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.Failures;
import java.lang.System.Logger.Level;
import java.util.EnumMap;
import java.util.Map;

/// One pool of the driver in use: created here, or another owner's.
///
/// In another owner's pool only the attributes that options name are set. Closing restores each attribute,
/// unless other code has changed its value since.
///
/// **Threads.** One thread opens it and one closes it. Any thread may make other calls at any time, even
/// during and after the close.
final class DriverPool {
    /// The unit in which the driver obtains memory and gives it back on an H200. Asked to keep a number of bytes,
    /// the driver keeps at least that many, so up to a page more. For a maximum, it is asked for a page less,
    /// plus one byte.
    static final long PAGE_BYTES = 32L << 20;

    private static final System.Logger LOG = System.getLogger(DriverPool.class.getName());

    private final PoolHandle handle;
    private final MemoryPools pools;
    private final int device;
    private final boolean own;
    private final Map<PoolAttribute, Change> changes = new EnumMap<>(PoolAttribute.class);

    private final Runnable closingNow = this::close;

    /// Closes the pool, unless its context died and took the pool along. Made in advance: closing needs no Java
    /// heap.
    final Runnable closing = () -> DeadContext.survive(closingNow);

    private record Change(long from, long to) {}

    private DriverPool(MemoryPools pools, int device, long handle, boolean own) {
        this.pools = pools;
        this.device = device;
        this.handle = new PoolHandle(pools, device, handle);
        this.own = own;
    }

    /// Returns the handle, only for allocations.
    long bareHandle() {
        return handle.bare();
    }

    /// Creates or looks up the pool of a device.
    ///
    /// @throws ConfigurationException if the options name no pool for this device
    /// @throws CudaException if the driver refuses; then nothing has changed
    static DriverPool open(CudaDriver driver, int device, AsyncOptions options) {
        MemoryPools pools = driver.pools();
        long handle = options.pool().own()
                ? pools.create(options.properties(driver, device))
                : options.pool().of(pools, device);
        if (handle == 0) {
            throw new ConfigurationException("async: pool=" + options.pool() + " names no pool for device " + device
                    + "; valid: a list of handles, one for each device that is used");
        }
        DriverPool pool = new DriverPool(pools, device, handle, options.pool().own());
        try {
            pool.set(driver, options);
            return pool;
        } catch (RuntimeException | Error failure) {
            pool.close();
            throw failure;
        }
    }

    private void set(CudaDriver driver, AsyncOptions options) {
        options.settings().forEach(this::set);
        options.threshold()
                .filter(threshold -> !(threshold instanceof ReleaseThreshold.Raised) || isThresholdUnset())
                .ifPresent(threshold -> set(PoolAttribute.RELEASE_THRESHOLD, threshold.initialBytes(driver, device)));
        if (options.location().isClosed()) {
            openTo(device);
        }
    }

    private boolean isThresholdUnset() {
        boolean unset = attribute(PoolAttribute.RELEASE_THRESHOLD) == 0;
        if (unset) {
            LOG.log(
                    Level.INFO,
                    "the default pool of device {0} keeps its memory across synchronisations while async uses it; with"
                            + " release_threshold=zero it does not",
                    device);
        }
        return unset;
    }

    /// Sets an attribute; for another owner's pool it remembers the value to restore.
    void set(PoolAttribute attribute, long value) {
        if (!own) {
            changes.put(attribute, new Change(attribute(attribute), value));
        }
        handle.setAttribute(attribute, value);
    }

    /// Makes the pool obtain memory: allocates and frees it under a threshold that keeps everything. So the
    /// synchronisation leaves it in the pool; without the synchronisation only this stream could use it.
    void prime(CudaDriver driver, long byteSize, long stream) {
        long[] primed = new long[1];
        Runnable free = () -> pools.free(device, primed[0], stream); // before, for a full Java heap
        long threshold = attribute(PoolAttribute.RELEASE_THRESHOLD);
        handle.setAttribute(PoolAttribute.RELEASE_THRESHOLD, Long.MAX_VALUE);
        try {
            primed[0] = pools.allocateFrom(device, bareHandle(), byteSize, stream);
            DeadContext.insist(free);
            driver.streams().synchronize(device, stream);
        } finally {
            handle.setAttribute(PoolAttribute.RELEASE_THRESHOLD, threshold);
        }
    }

    /// Lets another device use the memory.
    void openTo(int peer) {
        handle.setAccess(peer, AccessRights.READ_WRITE);
    }

    /// Takes back another device's access, after a failure.
    void closeTo(int peer, Throwable because) {
        try {
            handle.setAccess(peer, AccessRights.NONE);
        } catch (CudaException second) {
            because.addSuppressed(second);
        }
    }

    long attribute(PoolAttribute attribute) {
        return handle.attribute(attribute);
    }

    /// Restarts a high-water mark at the present value. Does nothing in another owner's pool.
    void resetMark(PoolAttribute high) {
        if (own) {
            handle.setAttribute(high, 0);
        }
    }

    /// Gives back whole idle pages, as few as make up for an excess, or all there are.
    ///
    /// @param excessBytes how many bytes to give back; 0 or less for none
    /// @return the number of bytes given back
    long giveBack(long excessBytes) {
        if (excessBytes <= 0) {
            return 0;
        }
        long before = attribute(PoolAttribute.RESERVED_CURRENT);
        handle.trimTo(Math.max(0, before - excessBytes - PAGE_BYTES + 1));
        return Math.max(0, before - attribute(PoolAttribute.RESERVED_CURRENT));
    }

    /// Destroys an own pool; memory alive in it stays valid. In another pool it restores the changed
    /// attributes, even if some of that fails. No call reaches either pool afterwards.
    void close() {
        handle.end();
        if (own) {
            destroy();
        } else {
            Failures failures = new Failures();
            changes.forEach((attribute, change) -> failures.gather(() -> takeBack(attribute, change)));
            failures.rethrow();
        }
    }

    /// Destroys the pool. If the driver refuses, the pool at least gives back all idle memory.
    private void destroy() {
        try {
            handle.destroy();
        } catch (CudaException refused) {
            try {
                pools.trimTo(device, handle.bare(), 0);
            } catch (CudaException second) {
                refused.addSuppressed(second);
            }
            throw refused;
        }
    }

    private void takeBack(PoolAttribute attribute, Change change) {
        if (pools.attribute(device, handle.bare(), attribute) == change.to) {
            pools.setAttribute(device, handle.bare(), attribute, change.from);
        }
    }
}
