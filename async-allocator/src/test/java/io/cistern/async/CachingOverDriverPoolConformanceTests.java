package io.cistern.async;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// What every allocator does, with ranges of the driver's pools underneath.
class CachingOverDriverPoolConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("caching:source=driver_pool");
    }
}
