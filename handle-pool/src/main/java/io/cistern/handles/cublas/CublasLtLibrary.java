package io.cistern.handles.cublas;

import io.cistern.cuda.Devices;
import io.cistern.handles.HandleLibrary;

/// Creates handles of cuBLASLt for a pool. A native handle has no stream and no workspace, so the Java object
/// keeps them for the next call.
final class CublasLtLibrary implements HandleLibrary<CublasLtHandle> {
    private final CublasLtFunctions functions;
    private final Devices devices;

    CublasLtLibrary(CublasLtFunctions functions, Devices devices) {
        this.functions = functions;
        this.devices = devices;
    }

    @Override
    public String name() {
        return "cuBLASLt";
    }

    @Override
    public CublasLtHandle create(int device) {
        return functions.create(device);
    }

    @Override
    public void destroy(CublasLtHandle handle, int device) {
        try {
            MatmulPlans.destroyAll(handle);
        } finally {
            functions.destroy(handle);
        }
    }

    @Override
    public void setStream(CublasLtHandle handle, long stream) {
        handle.setStream(stream);
    }

    @Override
    public long workspaceBytes(int device) {
        return WorkspaceSize.recommended(devices, device);
    }

    @Override
    public void setWorkspace(CublasLtHandle handle, long address, long byteSize) {
        handle.setWorkspace(address, byteSize);
    }
}
