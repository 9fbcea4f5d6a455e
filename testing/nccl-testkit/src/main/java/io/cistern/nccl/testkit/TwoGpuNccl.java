package io.cistern.nccl.testkit;

import io.cistern.cuda.CudaDriver;
import io.cistern.testkit.DriverUnderTest;

/// [TwoGpuContract] on the driver in the system property `cistern.testkit.driver`.
public class TwoGpuNccl extends TwoGpuContract {
    /// For JUnit.
    public TwoGpuNccl() {}

    @Override
    protected final CudaDriver openDriver() {
        return DriverUnderTest.open();
    }
}
