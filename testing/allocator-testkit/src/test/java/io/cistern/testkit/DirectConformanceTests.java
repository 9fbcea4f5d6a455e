package io.cistern.testkit;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;

class DirectConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("direct");
    }
}
