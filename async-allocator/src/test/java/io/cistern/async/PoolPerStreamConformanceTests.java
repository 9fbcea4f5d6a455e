package io.cistern.async;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// What every allocator does, with a pool of the driver for each stream.
class PoolPerStreamConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("async:per_stream=true");
    }
}
