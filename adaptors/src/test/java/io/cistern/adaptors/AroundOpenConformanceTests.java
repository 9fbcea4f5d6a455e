package io.cistern.adaptors;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.testkit.AllocatorConformance;

/// An adaptor around an allocator that is open itself, and that reports the bytes of both.
class AroundOpenConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open(
                OpenOptions.around("mine", memory.open("caching"), upstream -> new AllocatorAdaptor(upstream) {}));
    }
}
