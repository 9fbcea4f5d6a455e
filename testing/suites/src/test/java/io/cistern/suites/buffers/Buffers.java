package io.cistern.suites.buffers;

import io.cistern.cuda.CudaDriver;
import io.cistern.suites.DriverUnderTest;
import org.junit.jupiter.api.Tag;

/// Runs the suite on the driver in the system property `cistern.testkit.driver`: `cuda`, the
/// default, `simulated`, or `auto`.
@Tag("buffers")
public class Buffers extends BufferContract {
    /// For JUnit.
    public Buffers() {}

    @Override
    protected final CudaDriver openDriver() {
        return DriverUnderTest.open();
    }
}
