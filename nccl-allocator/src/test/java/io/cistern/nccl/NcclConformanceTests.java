package io.cistern.nccl;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// What every allocator does, over segments of the simulated `ncclMemAlloc`.
class NcclConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("nccl");
    }
}
