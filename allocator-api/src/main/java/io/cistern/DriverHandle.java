package io.cistern;

import io.cistern.cuda.DeadContext;
import io.cistern.internal.names.Devices;
import io.cistern.internal.names.UntilDone;

/// A stream or an event as an object. It either owns its driver handle and destroys the handle on close, or
/// it wraps a handle that other code made and will destroy.
///
/// **Threads.** Any thread may call any method at any time. If several threads end it concurrently, only
/// one call takes effect.
abstract sealed class DriverHandle permits CudaEvent, CudaStream {
    final DeviceMemory memory;
    final int device;
    final boolean own;

    /// The handle, even after the end.
    final long raw;

    private volatile boolean ended;

    private final UntilDone destroyed = new UntilDone();

    DriverHandle(DeviceMemory memory, int device, long raw, boolean own) {
        this.memory = memory;
        this.device = device;
        this.raw = raw;
        this.own = own;
    }

    /// Checks the ordinal before the driver does: the driver's error would not say which devices there are.
    ///
    /// @return the ordinal
    /// @throws IndexOutOfBoundsException if there is no such device
    static int checked(DeviceMemory memory, int device) {
        return Devices.check(device, memory.driver().devices().count());
    }

    /// Returns the driver's handle: a `CUstream` or a `CUevent`.
    ///
    /// @throws IllegalStateException if this object is closed, or is a foreign stream whose end was
    ///     announced
    public long handle() {
        if (ended) {
            throw new IllegalStateException(this + " is closed");
        }
        return raw;
    }

    /// Returns the device that the stream or event belongs to.
    public int device() {
        return device;
    }

    /// Marks the handle as ended.
    ///
    /// @return whether this call was the first
    final synchronized boolean end() {
        boolean first = !ended;
        ended = true;
        return first;
    }

    /// Lets the next [#end] be the first again.
    final synchronized void endAgain() {
        ended = false;
    }

    final boolean isEnded() {
        return ended;
    }

    /// Destroys the owned handle. If the driver refuses, the next call tries again.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses a few times
    final void destroy(Runnable destroying) {
        destroyed.run(() -> DeadContext.insist(destroying));
    }

    /// Returns whether the handle is destroyed, or a thread is about to destroy it.
    final boolean isDestroyed() {
        return destroyed.isDone();
    }

    /// Returns the handle and the device.
    @Override
    public String toString() {
        return getClass().getSimpleName() + "[0x" + Long.toHexString(raw) + ", device " + device
                + (own ? "" : ", foreign") + "]";
    }
}
