package io.cistern.async;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// What every allocator does, over the driver's pools.
class AsyncConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("async:release_threshold=adaptive");
    }
}
