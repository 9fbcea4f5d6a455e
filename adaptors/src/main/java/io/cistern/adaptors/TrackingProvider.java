package io.cistern.adaptors;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;

/// Provides `tracking`: a [TrackingAllocator], which `allocator.extension(TrackingAllocator.class)` finds. Options:
/// `frames`, how many frames of a site to remember, 8 by default; `upstream`, a spec.
public final class TrackingProvider extends AdaptorProvider {
    private static final int MAX_FRAMES = 1024;

    /// For [java.util.ServiceLoader].
    public TrackingProvider() {}

    @Override
    public String name() {
        return "tracking";
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        long frames = context.options().number("frames", 0, MAX_FRAMES).orElse((long) TrackingAllocator.DEFAULT_FRAMES);
        return new TrackingAllocator(context.upstream(upstream), (int) frames);
    }
}
