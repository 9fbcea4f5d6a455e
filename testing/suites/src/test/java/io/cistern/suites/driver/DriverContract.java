package io.cistern.suites.driver;

import io.cistern.cuda.CudaDriver;
import org.junit.jupiter.api.Nested;

/// Tests of a [CudaDriver], by topic. The real driver and the simulated GPU run the same suite: the simulated
/// GPU is right if both pass.
///
/// ```java
/// class MyDriverTests extends DriverContract {
///     protected CudaDriver openDriver() { return new MyDriver(); }
/// }
/// ```
///
/// Actions that break a real device for the rest of the process (access to unmapped memory, a write without
/// permission) are left to the simulated GPU's own tests. If there is only one device, tests that need two are
/// skipped with that reason.
public abstract class DriverContract {
    /// For subclasses.
    protected DriverContract() {}

    /// Opens the driver for one test; the suite closes it.
    ///
    /// @return a new driver with at least one device that nobody else is using
    protected abstract CudaDriver openDriver();

    @Nested
    final class DeviceTests extends DeviceContractTests {
        DeviceTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class LinearMemoryTests extends LinearMemoryContractTests {
        LinearMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class HostMemoryTests extends HostMemoryContractTests {
        HostMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class UnifiedMemoryTests extends UnifiedMemoryContractTests {
        UnifiedMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class CopyTests extends CopyContractTests {
        CopyTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PointerTests extends PointerContractTests {
        PointerTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class ModuleTests extends ModuleContractTests {
        ModuleTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class StreamTests extends StreamContractTests {
        StreamTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class HostFunctionTests extends HostFunctionContractTests {
        HostFunctionTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class EventTests extends EventContractTests {
        EventTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolAllocationTests extends PoolAllocationContractTests {
        PoolAllocationTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolAttributeTests extends PoolAttributeContractTests {
        PoolAttributeTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolRetentionTests extends PoolRetentionContractTests {
        PoolRetentionTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolReuseTests extends PoolReuseContractTests {
        PoolReuseTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolLocationTests extends PoolLocationContractTests {
        PoolLocationTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class CaptureTests extends CaptureContractTests {
        CaptureTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class CaptureModeTests extends CaptureModeContractTests {
        CaptureModeTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class GraphTests extends GraphContractTests {
        GraphTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class GraphMemoryTests extends GraphMemoryContractTests {
        GraphMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PhysicalMemoryTests extends PhysicalMemoryContractTests {
        PhysicalMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class MappingTests extends MappingContractTests {
        MappingTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class AccessRightsTests extends AccessRightsContractTests {
        AccessRightsTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class AliasTests extends AliasContractTests {
        AliasTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PeerTests extends PeerContractTests {
        PeerTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolAccessTests extends PoolAccessContractTests {
        PoolAccessTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class SharingTests extends SharingContractTests {
        SharingTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class ThreadTests extends ThreadContractTests {
        ThreadTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class FailureTests extends FailureContractTests {
        FailureTests() {
            super(DriverContract.this);
        }
    }
}
