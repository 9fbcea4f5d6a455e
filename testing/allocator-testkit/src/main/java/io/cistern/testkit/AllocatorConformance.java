package io.cistern.testkit;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;

/// Tests that every allocator must pass. To test an allocator, implement one method:
///
/// ```java
/// class MyAllocatorConformanceTests extends AllocatorConformance {
///     protected Allocator open(DeviceMemory memory) { return memory.open("mine"); }
/// }
/// ```
///
/// The allocator runs behind [DeviceMemory], as programs use it, on a new simulated GPU for each test. A
/// subclass that overrides [#openDriver()] with a real driver runs the same tests on a GPU. After every
/// test all memory must be back with the driver, except memory that the driver permanently refused to take
/// back, and the simulated GPU must have reported no misuse.
///
/// The suite allocates up to five eighths of the device's memory as one block. After frees in other sizes, three
/// quarters of the device's memory must fit as blocks of equal size: the suite tries nine counts from 2 to 64. So an
/// allocator that rounds sizes up must bound what it wastes: to try the exact size last is too late once rounded blocks
/// fill the device. An allocator that caches blocks by size must give idle ones back.
///
/// Each part has a tag, so it can run alone: `conformance-basic`, `-allocation`, `-capacity`, `-trim`, `-order`,
/// `-use`, `-stream`, `-concurrency`, `-statistics`, `-device`, `-fault`. With Maven:
/// `mvn test -Dgroups=conformance-order`.
///
/// Random tests start from a fixed seed, or from the system property `cistern.testkit.seed`. A
/// failure prints its seed.
public abstract class AllocatorConformance {
    private static final int SIMULATED_DEVICES = 2;
    private static final long SIMULATED_CAPACITY = 1L << 30;

    /// Creates the suite; subclasses call this.
    protected AllocatorConformance() {}

    /// Opens the allocator under test.
    ///
    /// @param memory new device memory with the catalogue from [#catalog()]
    /// @return the allocator, opened on `memory` by name or as a [io.cistern.spi.DeviceAllocator] that this
    ///     method creates
    protected abstract Allocator open(DeviceMemory memory);

    /// Opens the driver for one test; the suite closes it.
    ///
    /// @return a new simulated GPU of two devices with 1 GiB each, unless overridden
    protected CudaDriver openDriver() {
        return SimulatedGpu.builder()
                .devices(SIMULATED_DEVICES)
                .capacityBytes(SIMULATED_CAPACITY)
                .build();
    }

    /// Returns the allocators and sources that can be opened by name.
    ///
    /// @return those found on the class path or module path, unless overridden
    protected Catalog catalog() {
        return DiscoveredCatalog.find();
    }

    @Nested
    @Tag("conformance-basic")
    final class BasicTests extends BasicContractTests {
        BasicTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-allocation")
    final class AllocationTests extends AllocationContractTests {
        AllocationTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-capacity")
    final class CapacityTests extends CapacityContractTests {
        CapacityTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-trim")
    final class TrimTests extends TrimContractTests {
        TrimTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-order")
    final class OrderTests extends OrderContractTests {
        OrderTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-use")
    final class UseTests extends UseContractTests {
        UseTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-stream")
    final class StreamTests extends StreamContractTests {
        StreamTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-concurrency")
    final class ConcurrencyTests extends ConcurrencyContractTests {
        ConcurrencyTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-statistics")
    final class StatisticsTests extends StatisticsContractTests {
        StatisticsTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-device")
    final class DeviceTests extends DeviceContractTests {
        DeviceTests() {
            super(AllocatorConformance.this);
        }
    }

    @Nested
    @Tag("conformance-fault")
    final class FaultTests extends FaultContractTests {
        FaultTests() {
            super(AllocatorConformance.this);
        }
    }
}
