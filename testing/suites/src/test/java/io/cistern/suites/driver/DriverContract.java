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
    final class DeviceTests extends DeviceChapter {
        DeviceTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class LinearMemoryTests extends LinearMemoryChapter {
        LinearMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class HostMemoryTests extends HostMemoryChapter {
        HostMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class UnifiedMemoryTests extends UnifiedMemoryChapter {
        UnifiedMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class CopyTests extends CopyChapter {
        CopyTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PointerTests extends PointerChapter {
        PointerTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class ModuleTests extends ModuleChapter {
        ModuleTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class StreamTests extends StreamChapter {
        StreamTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class HostFunctionTests extends HostFunctionChapter {
        HostFunctionTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class EventTests extends EventChapter {
        EventTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolAllocationTests extends PoolAllocationChapter {
        PoolAllocationTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolAttributeTests extends PoolAttributeChapter {
        PoolAttributeTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolRetentionTests extends PoolRetentionChapter {
        PoolRetentionTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolReuseTests extends PoolReuseChapter {
        PoolReuseTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolLocationTests extends PoolLocationChapter {
        PoolLocationTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class CaptureTests extends CaptureChapter {
        CaptureTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class CaptureModeTests extends CaptureModeChapter {
        CaptureModeTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class GraphTests extends GraphChapter {
        GraphTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class GraphMemoryTests extends GraphMemoryChapter {
        GraphMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PhysicalMemoryTests extends PhysicalMemoryChapter {
        PhysicalMemoryTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class MappingTests extends MappingChapter {
        MappingTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class AccessRightsTests extends AccessRightsChapter {
        AccessRightsTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class AliasTests extends AliasChapter {
        AliasTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PeerTests extends PeerChapter {
        PeerTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class PoolAccessTests extends PoolAccessChapter {
        PoolAccessTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class SharingTests extends SharingChapter {
        SharingTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class ThreadTests extends ThreadChapter {
        ThreadTests() {
            super(DriverContract.this);
        }
    }

    @Nested
    final class FailureTests extends FailureChapter {
        FailureTests() {
            super(DriverContract.this);
        }
    }
}
