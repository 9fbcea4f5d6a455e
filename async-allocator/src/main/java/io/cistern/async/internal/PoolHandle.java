package io.cistern.async.internal;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import java.util.Optional;
import java.util.concurrent.locks.StampedLock;

/// A pool of the driver that one thread may give up while others ask for its figures or change its settings: no call
/// reaches the pool once it has been given up. On a real driver such a call would use freed memory.
///
/// Every call is made under a read lock, and [#end] takes the write lock: it waits for the calls under way, each a
/// single call of the driver, and lets none begin after it. Allocations alone use the [bare handle][#bare]: the
/// framework counts them, and closes an allocator when none is under way.
///
/// A stamped lock needs no Java heap to be held or left, and a stack overflow can't leave it held.
///
/// **Threads.** Any.
public final class PoolHandle {
    private final MemoryPools pools;
    private final int device;
    private final long handle;
    private final StampedLock lock = new StampedLock();

    /// Guarded by the lock.
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
    public long attribute(PoolAttribute attribute) {
        long stamp = lock.readLock();
        try {
            return ended ? 0 : pools.attribute(device, handle, attribute);
        } finally {
            lock.unlockRead(stamp);
        }
    }

    /// Sets an attribute; does nothing after the end.
    public void setAttribute(PoolAttribute attribute, long value) {
        long stamp = lock.readLock();
        try {
            if (!ended) {
                pools.setAttribute(device, handle, attribute, value);
            }
        } finally {
            lock.unlockRead(stamp);
        }
    }

    /// Gives idle memory back until at most `keepBytes` are reserved; does nothing after the end.
    public void trimTo(long keepBytes) {
        long stamp = lock.readLock();
        try {
            if (!ended) {
                pools.trimTo(device, handle, keepBytes);
            }
        } finally {
            lock.unlockRead(stamp);
        }
    }

    /// Sets what a device may do with the memory.
    ///
    /// @return false after the end
    public boolean setAccess(int peer, AccessRights rights) {
        long stamp = lock.readLock();
        try {
            if (!ended) {
                pools.setAccess(device, handle, peer, rights);
            }
            return !ended;
        } finally {
            lock.unlockRead(stamp);
        }
    }

    /// What a device may do with the memory; empty after the end.
    public Optional<AccessRights> access(int peer) {
        long stamp = lock.readLock();
        try {
            return ended ? Optional.empty() : Optional.of(pools.access(device, handle, peer));
        } finally {
            lock.unlockRead(stamp);
        }
    }

    /// Lets no call begin any more, and waits for those under way.
    public void end() {
        long stamp = lock.writeLock();
        ended = true;
        lock.unlockWrite(stamp);
    }

    /// Ends and destroys the pool; memory alive in it stays valid.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses: then it may be called again
    public void destroy() {
        end();
        pools.destroy(device, handle);
    }
}
