package io.cistern.testkit;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;

/// Opens device memory for tests, on a simulated GPU, in one line.
///
/// ```java
/// try (DeviceMemory memory = TestMemory.open("mine:limit=1GiB", 8L << 30)) {
///     long block = memory.allocate(1 << 20, 0, 0);
///     memory.free(block, 0);
/// }
/// ```
///
/// Every allocator and source on the class path or module path can be opened.
/// [TestMemory#gpu] returns the GPU of such memory, to keep a stream
/// [busy][SimulatedGpu#keepBusy] or to read its [misuses][SimulatedGpu#misuses].
///
/// **Threads.** Any thread may call any method at any time.
public final class TestMemory {
    private TestMemory() {}

    /// Opens device memory on one simulated H200. The allocator with the highest priority is current.
    public static DeviceMemory open() {
        return on(SimulatedGpu.builder().build());
    }

    /// Opens device memory on one simulated GPU, and makes an allocator current.
    ///
    /// @param spec the allocator's spec, `NAME` or `NAME:key=value,…`
    /// @param capacityBytes the memory of the GPU in bytes, above 0
    /// @throws io.cistern.errors.ConfigurationException if the spec is invalid
    public static DeviceMemory open(String spec, long capacityBytes) {
        DeviceMemory memory =
                on(SimulatedGpu.builder().capacityBytes(capacityBytes).build());
        try {
            memory.setCurrent(spec);
            return memory;
        } catch (Throwable failure) {
            memory.close();
            throw failure;
        }
    }

    private static DeviceMemory on(SimulatedGpu gpu) {
        return DeviceMemory.builder(gpu).catalog(DiscoveredCatalog.find()).open();
    }

    /// Returns the simulated GPU of a device memory.
    ///
    /// @throws IllegalArgumentException if its driver is not a simulated GPU
    public static SimulatedGpu gpu(DeviceMemory memory) {
        if (memory.driver().original() instanceof SimulatedGpu gpu) {
            return gpu;
        }
        throw new IllegalArgumentException(memory + " is not on a simulated GPU");
    }
}
