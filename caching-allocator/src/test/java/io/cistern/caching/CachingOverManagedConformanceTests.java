package io.cistern.caching;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.AllocatorConformance;

/// What every allocator does, over managed memory. A cap says when the device is full, since nothing else would;
/// and the device is small, since the host's memory behind it is real.
class CachingOverManagedConformanceTests extends AllocatorConformance {
    @Override
    protected CudaDriver openDriver() {
        return SimulatedGpu.builder().devices(2).capacityBytes(448L << 20).build();
    }

    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("caching:source=managed,max_bytes=448MiB");
    }
}
