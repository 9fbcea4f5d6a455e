package io.cistern.async.internal;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import java.util.Optional;

/// A pool of the driver that one thread may give up while others ask for its figures or change its settings: no call
/// reaches the pool once it has been given up. On a real driver such a call would use freed memory.
///
/// Every call is made under the monitor of this, as is [#end]: it waits for the call under way, a single one of the
/// driver, and lets none begin after it. Allocations alone use the [bare handle][#bare]: the framework counts them, and
/// closes an allocator when none is under way.
///
/// A monitor it is, since that is left without a call, which a stack overflow could prevent.
///
/// **Threads.** Any.
public final class PoolHandle {
    private final MemoryPools pools;
    private final int device;
    private final long handle;

    /// Guarded by this.
    private boolean ended;

    /// A pool that exists.
    public PoolHandle(MemoryPools pools, int device, long handle) {
        this.pools = pools;
        this.device = device;
        this.handle = handle;
    }

    /// For allocations, which the framework counts, and for the thread that has [ended][#end] it.
    public long bare() {
        return handle;
    }

    /// Reads an attribute; 0 after the end.
    public synchronized long attribute(PoolAttribute attribute) {
        return ended ? 0 : pools.attribute(device, handle, attribute);
    }

    /// Sets an attribute; does nothing after the end.
    public synchronized void setAttribute(PoolAttribute attribute, long value) {
        if (!ended) {
            pools.setAttribute(device, handle, attribute, value);
        }
    }

    /// Gives idle memory back until at most `keepBytes` are reserved; does nothing after the end.
    public synchronized void trimTo(long keepBytes) {
        if (!ended) {
            pools.trimTo(device, handle, keepBytes);
        }
    }

    /// Sets what a device may do with the memory.
    ///
    /// @return false after the end
    public synchronized boolean setAccess(int peer, AccessRights rights) {
        if (!ended) {
            pools.setAccess(device, handle, peer, rights);
        }
        return !ended;
    }

    /// What a device may do with the memory; empty after the end.
    public synchronized Optional<AccessRights> access(int peer) {
        return ended ? Optional.empty() : Optional.of(pools.access(device, handle, peer));
    }

    /// Lets no call begin any more, and waits for the one under way.
    public synchronized void end() {
        ended = true;
    }

    /// Ends and destroys the pool; memory alive in it stays valid.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses: then it may be called again
    public void destroy() {
        end();
        pools.destroy(device, handle);
    }
}
