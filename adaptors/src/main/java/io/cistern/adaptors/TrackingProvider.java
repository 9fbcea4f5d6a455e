package io.cistern.adaptors;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.SpecOption;
import java.util.List;

/// Provides `tracking`, a [TrackingAllocator], which `allocator.extension(TrackingAllocator.class)`
/// returns. Options: `frames`, how many stack frames of each allocation to remember, 8 by default;
/// `upstream`, a spec.
public final class TrackingProvider extends AdaptorProvider {
    /// Created on first use, since every program with this JAR creates the provider.
    private static final class Options {
        static final SpecOption<Long> FRAMES = SpecOption.of(
                "tracking",
                "frames",
                "a whole number from 0 to 1024",
                String.valueOf(TrackingAllocator.DEFAULT_FRAMES),
                "stack frames recorded for each block",
                (options, key) -> options.number(key, 0, 1024));
    }

    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public TrackingProvider() {}

    @Override
    public String name() {
        return "tracking";
    }

    @Override
    List<SpecOption<?>> ownOptions() {
        return List.of(Options.FRAMES);
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        long frames = Options.FRAMES.read(context.options()).orElse((long) TrackingAllocator.DEFAULT_FRAMES);
        return new TrackingAllocator(context.upstream(upstream), (int) frames);
    }
}
