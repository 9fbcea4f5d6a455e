package io.cistern.handles.cublas;

import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.Devices;

/// The workspace sizes that NVIDIA recommends, from the table at `cublasSetWorkspace` in the documentation of
/// cuBLAS. The library's own workspaces have the same sizes.
final class WorkspaceSize {
    private static final int HOPPER = 9;
    private static final long OF_HOPPER_AND_NEWER = 32L << 20;
    private static final long OF_OTHERS = 4L << 20;

    private WorkspaceSize() {}

    /// Returns the recommended size in bytes.
    static long recommended(Devices devices, int device) {
        return devices.attribute(device, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR) >= HOPPER
                ? OF_HOPPER_AND_NEWER
                : OF_OTHERS;
    }
}
