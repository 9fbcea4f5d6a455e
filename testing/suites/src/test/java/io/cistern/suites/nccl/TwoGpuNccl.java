package io.cistern.suites.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.suites.DriverUnderTest;
import org.junit.jupiter.api.Tag;

/// Runs [TwoGpuContract] on the driver in the system property `cistern.testkit.driver`.
@Tag("two-gpus")
public class TwoGpuNccl extends TwoGpuContract {
    /// For JUnit.
    public TwoGpuNccl() {}

    @Override
    protected final CudaDriver openDriver() {
        return DriverUnderTest.open();
    }
}
