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
import java.util.EnumMap;
import java.util.Map;

/// One pool of the driver in use: made here, or somebody else's.
///
/// Of somebody else's only the attributes that options name are set. When it closes each goes back to what it was,
/// unless another value than ours is there by then: then somebody else has set it meanwhile, and wins.
///
/// **Threads.** Opened and closed once; all else by any thread at any time, also while it closes and after.
final class DriverPool {
    /// What the driver gives back at a time on an H200. It leaves at least what it is told to keep, and so up to a
    /// page more: to leave at most that it is told a page less, but for a byte.
    private static final long PAGE_BYTES = 32L << 20;

    private final PoolHandle handle;
    private final MemoryPools pools;
    private final int device;
    private final boolean own;
    private final Map<PoolAttribute, Change> changes = new EnumMap<>(PoolAttribute.class);

    private final Runnable closingNow = this::close;

    /// Closes it, unless its context died and took it along. Made in advance: closing needs no Java heap.
    final Runnable closing = () -> DeadContext.survive(closingNow);

    private record Change(long from, long to) {}

    private DriverPool(MemoryPools pools, int device, long handle, boolean own) {
        this.pools = pools;
        this.device = device;
        this.handle = new PoolHandle(pools, device, handle);
        this.own = own;
    }

    /// For allocations alone.
    long bareHandle() {
        return handle.bare();
    }

    /// Makes or looks up the pool of a device.
    ///
    /// @throws ConfigurationException if the options name none for this device
    /// @throws CudaException if the driver refuses; then nothing has changed
    static DriverPool open(CudaDriver driver, int device, AsyncOptions options) {
        MemoryPools pools = driver.pools();
        long handle = options.pool().own()
                ? pools.create(options.properties(driver, device))
                : options.pool().of(pools, device);
        if (handle == 0) {
            throw new ConfigurationException("async: pool=" + options.pool() + " names no pool for device " + device
                    + "; legal: a list of handles, one for each device that is used");
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
                .ifPresent(threshold -> set(PoolAttribute.RELEASE_THRESHOLD, threshold.initialBytes(driver, device)));
        if (options.location().isClosed()) {
            openTo(device);
        }
    }

    /// Sets an attribute, of which a pool of somebody else's remembers what it was.
    void set(PoolAttribute attribute, long value) {
        if (!own) {
            changes.put(attribute, new Change(attribute(attribute), value));
        }
        handle.setAttribute(attribute, value);
    }

    /// Has the pool obtain memory: allocates and frees it under a threshold that keeps everything, so that the
    /// synchronisation, without which only this stream could use it, leaves it there.
    void prime(CudaDriver driver, long byteSize, long stream) {
        long threshold = attribute(PoolAttribute.RELEASE_THRESHOLD);
        handle.setAttribute(PoolAttribute.RELEASE_THRESHOLD, Long.MAX_VALUE);
        try {
            pools.free(device, pools.allocateFrom(device, bareHandle(), byteSize, stream), stream);
            driver.streams().synchronize(device, stream);
        } finally {
            handle.setAttribute(PoolAttribute.RELEASE_THRESHOLD, threshold);
        }
    }

    /// Lets another device use the memory.
    void openTo(int peer) {
        handle.setAccess(peer, AccessRights.READ_WRITE);
    }

    /// Takes that back, after a failure.
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

    /// Lets a high-water mark begin at the present value. Those of somebody else's pool are left alone.
    void resetMark(PoolAttribute high) {
        if (own) {
            handle.setAttribute(high, 0);
        }
    }

    /// Gives back whole pages of what is idle, as few as make up for an excess, or all there are.
    ///
    /// @param excessBytes at most 0 for nothing
    /// @return how many bytes went
    long giveBack(long excessBytes) {
        if (excessBytes <= 0) {
            return 0;
        }
        long before = attribute(PoolAttribute.RESERVED_CURRENT);
        handle.trimTo(Math.max(0, before - excessBytes - PAGE_BYTES + 1));
        return Math.max(0, before - attribute(PoolAttribute.RESERVED_CURRENT));
    }

    /// Ends an own pool; memory alive in it stays valid. Sets back what was changed of another one, whatever of
    /// that fails. No call reaches either afterwards.
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

    /// A pool that the driver refuses to destroy keeps nothing that is idle.
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
