package io.cistern.caching;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// What every allocator does, over managed memory.
class CachingOverManagedConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("managed");
    }
}
