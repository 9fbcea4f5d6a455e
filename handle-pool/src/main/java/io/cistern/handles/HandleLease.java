package io.cistern.handles;

/// The right of a thread to use its handle of one device: see [HandlePool#lease]. When a virtual thread
/// closes its last lease, its handle goes back to the pool for other threads.
///
/// **Threads.** Only the thread that opened the lease may use it.
///
/// @param <H> the type of the handle
public final class HandleLease<H> implements AutoCloseable {
    private final DeviceHandles<H> handles;
    private final ThreadSlot<H> slot;
    private boolean closed;

    HandleLease(DeviceHandles<H> handles, ThreadSlot<H> slot) {
        this.handles = handles;
        this.slot = slot;
    }

    /// Returns the handle with a stream set, as [HandlePool#handle] does.
    ///
    /// @param stream a `CUstream` of the lease's device
    /// @throws IllegalStateException if the lease is closed, or another thread opened it
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory for a workspace
    public H handle(long stream) {
        requireOwner();
        if (closed) {
            throw new IllegalStateException("the lease is closed: open another one");
        }
        H ready = handles.ready(slot, stream);
        return ready == null ? handles.set(slot, stream) : ready;
    }

    /// Ends the lease. Work already enqueued on streams is unaffected. Closing twice does nothing.
    ///
    /// @throws IllegalStateException if another thread opened the lease
    @Override
    public void close() {
        requireOwner();
        if (!closed) {
            closed = true;
            handles.leave(slot);
        }
    }

    private void requireOwner() {
        if (!slot.isOfCurrentThread()) {
            throw new IllegalStateException(
                    "the lease of a handle belongs to the thread that opened it: open one on each thread");
        }
    }
}
