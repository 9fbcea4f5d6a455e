package io.cistern.suites.driver;

import io.cistern.cuda.CudaDriver;
import org.junit.jupiter.api.Nested;

/// Runs only the tests of [DriverContract] about graphs.
public abstract class GraphContract {
    private final DriverContract suite = new DriverContract() {
        @Override
        protected CudaDriver openDriver() {
            return GraphContract.this.openDriver();
        }
    };

    /// For subclasses.
    protected GraphContract() {}

    /// Opens the driver for one test; the suite closes it.
    protected abstract CudaDriver openDriver();

    @Nested
    final class CaptureTests extends CaptureContractTests {
        CaptureTests() {
            super(suite);
        }
    }

    @Nested
    final class CaptureModeTests extends CaptureModeContractTests {
        CaptureModeTests() {
            super(suite);
        }
    }

    @Nested
    final class GraphTests extends GraphContractTests {
        GraphTests() {
            super(suite);
        }
    }

    @Nested
    final class GraphMemoryTests extends GraphMemoryContractTests {
        GraphMemoryTests() {
            super(suite);
        }
    }
}
