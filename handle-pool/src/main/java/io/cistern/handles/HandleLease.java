package io.cistern.handles;

/// A region in which the calling thread has a handle of one device: what [HandlePool#lease] returns. It ends
/// when it is closed; then, on a virtual thread, the handle serves others.
///
/// **Threads.** Only the thread that opened it.
///
/// @param <H> the handle
public final class HandleLease<H> implements AutoCloseable {
    private final HandlePool<H> pool;
    private final ThreadSlot<H> slot;
    private boolean closed;

    HandleLease(HandlePool<H> pool, ThreadSlot<H> slot) {
        this.pool = pool;
        this.slot = slot;
    }

    /// Returns the handle with a stream set, as [HandlePool#handle] does.
    ///
    /// @param stream a `CUstream` of the lease's device
    /// @throws IllegalStateException if the lease is closed, or the thread is another than the one that
    ///     opened it
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory for a workspace
    public H handle(long stream) {
        requireOwner();
        if (closed) {
            throw new IllegalStateException("the lease is closed: open another one");
        }
        return pool.handle(slot.device, stream);
    }

    /// Ends the region. Work that was given to streams goes on. Closing twice does nothing.
    ///
    /// @throws IllegalStateException if the thread is another than the one that opened it
    @Override
    public void close() {
        requireOwner();
        if (!closed) {
            closed = true;
            pool.leave(slot);
        }
    }

    private void requireOwner() {
        if (!slot.owner.isCurrentThread()) {
            throw new IllegalStateException(
                    "the lease of a handle belongs to the thread that opened it: open one on each thread");
        }
    }
}
