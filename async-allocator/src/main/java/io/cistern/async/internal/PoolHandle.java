package io.cistern.async.internal;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import java.util.Optional;

/// A pool of the driver that one thread may end while others read its figures or change its settings. No call
/// reaches the pool after its end; on a real driver such a call would use freed memory.
///
/// Every call holds the monitor of this for a single driver call. [#end] takes the monitor too: it waits for
/// the call under way, and no call begins after it. Only allocations use the [bare handle][#bare], because the
/// framework counts them and closes an allocator when none is under way.
///
/// It is a monitor because leaving one makes no call, so a stack overflow can't keep it locked.
///
/// **Threads.** Any.
public final class PoolHandle {
    private final MemoryPools pools;
    private final int device;
    private final long handle;

    /// Made in advance: an end needs no Java heap.
    private final Runnable destroying = this::destroyNow;

    /// Guarded by this.
    private boolean ended;

    /// Wraps an existing pool.
    ///
    /// @param handle the driver's handle of the pool
    public PoolHandle(MemoryPools pools, int device, long handle) {
        this.pools = pools;
        this.device = device;
        this.handle = handle;
    }

    /// Returns the driver's handle, for allocations, which the framework counts, and for the thread that has
    /// [ended][#end] the pool.
    public long bare() {
        return handle;
    }

    /// Returns an attribute; 0 after the end, or if the context has died and taken the pool along.
    public synchronized long attribute(PoolAttribute attribute) {
        try {
            return ended ? 0 : pools.attribute(device, handle, attribute);
        } catch (CudaException failure) {
            requireDead(failure);
            return 0;
        }
    }

    /// Sets an attribute; does nothing after the end, or if the context has died.
    public synchronized void setAttribute(PoolAttribute attribute, long value) {
        try {
            if (!ended) {
                pools.setAttribute(device, handle, attribute, value);
            }
        } catch (CudaException failure) {
            requireDead(failure);
        }
    }

    private static void requireDead(CudaException failure) {
        if (!failure.result().endsContext()) {
            throw failure;
        }
    }

    /// Gives idle memory back until at most `keepBytes` are reserved; does nothing after the end.
    public synchronized void trimTo(long keepBytes) {
        if (!ended) {
            pools.trimTo(device, handle, keepBytes);
        }
    }

    /// Sets the access of a device to the memory.
    ///
    /// @return false after the end
    public synchronized boolean setAccess(int peer, AccessRights rights) {
        if (!ended) {
            pools.setAccess(device, handle, peer, rights);
        }
        return !ended;
    }

    /// Returns the access of a device to the memory; empty after the end.
    public synchronized Optional<AccessRights> access(int peer) {
        return ended ? Optional.empty() : Optional.of(pools.access(device, handle, peer));
    }

    /// Waits for the call under way, and lets no further call reach the pool.
    public synchronized void end() {
        ended = true;
    }

    /// Ends and destroys the pool; memory alive in it stays valid.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses a few times; the method may then be called again
    public void destroy() {
        end();
        DeadContext.insist(destroying);
    }

    private void destroyNow() {
        pools.destroy(device, handle);
    }
}
