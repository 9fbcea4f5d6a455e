package io.cistern.handles.cublas;

import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.Devices;

/// How much workspace NVIDIA recommends: the table at `cublasSetWorkspace` in the documentation of cuBLAS, which
/// is what the library's own workspaces have.
final class WorkspaceSize {
    private static final int HOPPER = 9;
    private static final long OF_HOPPER_AND_NEWER = 32L << 20;
    private static final long OF_OTHERS = 4L << 20;

    private WorkspaceSize() {}

    /// Returns the size that NVIDIA recommends.
    ///
    /// @return bytes
    static long recommended(Devices devices, int device) {
        return devices.attribute(device, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR) >= HOPPER
                ? OF_HOPPER_AND_NEWER
                : OF_OTHERS;
    }
}
