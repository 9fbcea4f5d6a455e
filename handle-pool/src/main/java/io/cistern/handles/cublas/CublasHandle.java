package io.cistern.handles.cublas;

/// A handle of cuBLAS, for code that calls the library itself: see [Cublas#pool].
///
/// **Threads.** The one that [io.cistern.handles.HandlePool#handle] gave it to.
public final class CublasHandle {
    private final long value;
    private final int device;
    final Scalars scalars = new Scalars();

    CublasHandle(long value, int device) {
        this.value = value;
        this.device = device;
    }

    /// Returns the `cublasHandle_t`. The pool destroys it.
    public long value() {
        return value;
    }

    /// Returns the ordinal of the device that it belongs to.
    public int device() {
        return device;
    }

    /// Returns handle and device.
    @Override
    public String toString() {
        return "CublasHandle[0x" + Long.toHexString(value) + ", device " + device + "]";
    }
}
