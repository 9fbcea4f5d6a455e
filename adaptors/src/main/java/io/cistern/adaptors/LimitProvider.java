package io.cistern.adaptors;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;

/// Provides `limit`: [LimitAllocator]. Options: `bytes`, the limit on each device; `upstream`, a spec.
public final class LimitProvider extends AdaptorProvider {
    /// For [java.util.ServiceLoader].
    public LimitProvider() {}

    @Override
    public String name() {
        return "limit";
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        long limitBytes = bytes(context.options(), "bytes", "8GiB");
        return new LimitAllocator(context.upstream(upstream), limitBytes);
    }
}
