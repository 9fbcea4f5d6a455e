package io.cistern.adaptors;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;

/// Provides `confined`, a [ConfinedAllocator] owned by the thread that opens it. Option: `upstream`, a spec.
public final class ConfinedProvider extends AdaptorProvider {
    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public ConfinedProvider() {}

    @Override
    public String name() {
        return "confined";
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        return new ConfinedAllocator(context.upstream(upstream), context.streams());
    }
}
