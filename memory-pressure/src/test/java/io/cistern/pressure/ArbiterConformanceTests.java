package io.cistern.pressure;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// An arbiter over the caching allocator does what every allocator does.
class ArbiterConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("arbiter:upstream=caching");
    }
}
