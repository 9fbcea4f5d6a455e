package io.cistern.adaptors;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;

/// Provides `prefetch`, a [PrefetchAllocator]. Option: `upstream`, the spec of an allocator of managed
/// memory, such as `caching:source=managed`.
public final class PrefetchProvider extends AdaptorProvider {
    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public PrefetchProvider() {}

    @Override
    public String name() {
        return "prefetch";
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        CudaDriver driver = context.extension(CudaDriver.class).orElseThrow();
        return new PrefetchAllocator(context.upstream(upstream), driver.unifiedMemory());
    }
}
