package io.cistern.pressure;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;

/// Provides `arbiter`: a [TaskArbiter], found by `allocator.extension(TaskArbiter.class)`. By name only. Options:
/// `upstream`, a spec, which must be given; `patience_millis`, from 1, 100 by default.
public final class ArbiterProvider implements AllocatorProvider {
    private static final long MAX_PATIENCE_MILLIS = 3_600_000;

    /// For [java.util.ServiceLoader].
    public ArbiterProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "arbiter";
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        Duration patience = context.options()
                .number("patience_millis", 1, MAX_PATIENCE_MILLIS)
                .map(Duration::ofMillis)
                .orElse(TaskArbiter.DEFAULT_PATIENCE);
        String upstream = context.options()
                .text("upstream")
                .orElseThrow(() -> new ConfigurationException(
                        "'arbiter' needs the option 'upstream', for example upstream=\"caching\""));
        return new TaskArbiter(context.upstream(upstream), patience);
    }
}
