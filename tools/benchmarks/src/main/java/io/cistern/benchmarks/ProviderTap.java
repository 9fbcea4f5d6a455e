package io.cistern.benchmarks;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Exposes the allocator of another provider, so that a benchmark can call it without the framework around it.
final class ProviderTap implements AllocatorProvider {
    private final String spec;
    private @Nullable DeviceAllocator tapped;

    ProviderTap(String spec) {
        this.spec = spec;
    }

    DeviceAllocator tapped() {
        return Objects.requireNonNull(tapped, "not open yet");
    }

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "tap";
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        tapped = context.upstream(spec);
        return new NoAllocator();
    }
}
