package io.cistern.nccl;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// What every allocator does, at deterministic offsets.
class SymmetricConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("symmetric:bytes=64MiB,largest=4MiB");
    }
}
