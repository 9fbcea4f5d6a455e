package com.example.allocator;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// The same where each free goes to the driver, which may refuse it.
class FullShelfConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("shelf:most=0");
    }
}
