package io.cistern.handles.cublas;

import java.util.ArrayList;
import java.util.List;

/// A handle of cuBLASLt, for code that calls the library itself: see [CublasLt#pool]. It carries the stream and
/// the workspace for the next call, which cuBLASLt takes as arguments.
///
/// **Threads.** Only the thread that got it from [io.cistern.handles.HandlePool#handle].
public final class CublasLtHandle {
    private final long value;
    private final int device;
    final Scalars scalars = new Scalars();

    /// The plans made for this handle, in the order of their last use.
    final List<MatmulPlan> plans = new ArrayList<>(MatmulPlans.MAX_PLANS);

    private long stream;
    private long workspace;
    private long workspaceBytes;

    CublasLtHandle(long value, int device) {
        this.value = value;
        this.device = device;
    }

    /// Returns the `cublasLtHandle_t`. The pool destroys it.
    public long value() {
        return value;
    }

    /// Returns the ordinal of the device that it belongs to.
    public int device() {
        return device;
    }

    /// Returns the stream for the next call: a `CUstream`.
    public long stream() {
        return stream;
    }

    /// Returns the address of the workspace for calls on [#stream]; 0 for none.
    public long workspace() {
        return workspace;
    }

    /// Returns the size of the workspace in bytes.
    public long workspaceBytes() {
        return workspaceBytes;
    }

    void setStream(long another) {
        stream = another;
        workspace = 0;
        workspaceBytes = 0;
    }

    void setWorkspace(long address, long byteSize) {
        workspace = address;
        workspaceBytes = byteSize;
    }

    /// Returns the handle, its device and its stream, for people.
    @Override
    public String toString() {
        return "CublasLtHandle[0x" + Long.toHexString(value) + ", device " + device + ", stream 0x"
                + Long.toHexString(stream) + "]";
    }
}
