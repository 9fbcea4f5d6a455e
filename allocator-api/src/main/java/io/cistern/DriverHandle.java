package io.cistern;

/// The life of a stream or an event as an object: a handle of the driver that was made here and ends with the object's
/// close, or one that other code made and will destroy.
///
/// **Threads.** Any thread may call any method at any time; of several that end it, one does.
abstract sealed class DriverHandle permits CudaEvent, CudaStream {
    final DeviceMemory memory;
    final int device;
    final boolean own;

    /// Also after the end.
    final long raw;

    private volatile boolean ended;

    DriverHandle(DeviceMemory memory, int device, long raw, boolean own) {
        this.memory = memory;
        this.device = device;
        this.raw = raw;
        this.own = own;
    }

    /// Returns the driver's handle: a `CUstream`, a `CUevent`.
    ///
    /// @throws IllegalStateException if it is closed
    public long handle() {
        if (ended) {
            throw new IllegalStateException(this + " is closed");
        }
        return raw;
    }

    /// Returns the device it belongs to.
    public int device() {
        return device;
    }

    /// Ends it.
    ///
    /// @return whether it had not ended before
    final synchronized boolean end() {
        boolean first = !ended;
        ended = true;
        return first;
    }

    /// Returns handle and device.
    @Override
    public String toString() {
        return getClass().getSimpleName() + "[0x" + Long.toHexString(raw) + ", device " + device
                + (own ? "" : ", foreign") + "]";
    }
}
