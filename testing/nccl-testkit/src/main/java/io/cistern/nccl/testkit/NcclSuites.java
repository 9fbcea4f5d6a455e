package io.cistern.nccl.testkit;

import io.cistern.testkit.GpuSuites;
import java.util.List;

/// The suites of NCCL: `cistern gpu-tests --suite OneGpuNccl --suite TwoGpuNccl --suite TwoProcessNccl`.
public final class NcclSuites implements GpuSuites {
    /// For [java.util.ServiceLoader].
    public NcclSuites() {}

    @Override
    public List<Class<?>> suites() {
        return List.of(OneGpuNccl.class, TwoGpuNccl.class, TwoProcessNccl.class);
    }
}
