package io.cistern.nccl;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// What every allocator does, at deterministic offsets.
class SymmetricConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("symmetric:bytes=16MiB,largest=1MiB");
    }
}
