package io.cistern.suites.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.suites.DriverUnderTest;
import org.junit.jupiter.api.Tag;

/// Runs [OneGpuContract] on the driver in the system property `cistern.testkit.driver`.
@Tag("nccl")
public class OneGpuNccl extends OneGpuContract {
    /// For JUnit.
    public OneGpuNccl() {}

    @Override
    protected final CudaDriver openDriver() {
        return DriverUnderTest.open();
    }
}
