package io.cistern.adaptors;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;

/// Provides `statistics`, a [StatisticsAllocator], which `allocator.extension(StatisticsAllocator.class)`
/// returns. Option: `upstream`, a spec.
public final class StatisticsProvider extends AdaptorProvider {
    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public StatisticsProvider() {}

    @Override
    public String name() {
        return "statistics";
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        return new StatisticsAllocator(context.upstream(upstream));
    }
}
