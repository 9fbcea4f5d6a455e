package io.cistern.handles.cublas;

import io.cistern.cuda.Devices;
import io.cistern.handles.HandleLibrary;

/// Creates handles of cuBLAS for a pool, and sets their stream and workspace.
final class CublasLibrary implements HandleLibrary<CublasHandle> {
    private final CublasFunctions functions;
    private final Devices devices;

    CublasLibrary(CublasFunctions functions, Devices devices) {
        this.functions = functions;
        this.devices = devices;
    }

    @Override
    public String name() {
        return "cuBLAS";
    }

    @Override
    public CublasHandle create(int device) {
        return functions.create(device);
    }

    @Override
    public void destroy(CublasHandle handle, int device) {
        functions.destroy(handle);
    }

    @Override
    public void setStream(CublasHandle handle, long stream) {
        long before = devices.enterContext(handle.device());
        try {
            functions.setStream(handle, stream);
        } finally {
            devices.leaveContext(handle.device(), before);
        }
    }

    @Override
    public long workspaceBytes(int device) {
        return WorkspaceSize.recommended(devices, device);
    }

    @Override
    public void setWorkspace(CublasHandle handle, long address, long byteSize) {
        long before = devices.enterContext(handle.device());
        try {
            functions.setWorkspace(handle, address, byteSize);
        } finally {
            devices.leaveContext(handle.device(), before);
        }
    }
}
