package io.cistern.handles.cublas;

/// A handle of cuBLAS, for code that calls the library itself: see [Cublas#pool].
///
/// **Threads.** Only the thread that got it from [io.cistern.handles.HandlePool#handle].
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

    /// Returns the handle and its device, for people.
    @Override
    public String toString() {
        return "CublasHandle[0x" + Long.toHexString(value) + ", device " + device + "]";
    }
}
