package io.cistern.caching;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;

/// Provides `caching`: memory is kept, split and merged, and grows by pages.
///
/// Options: `source` (a segment source, `pages` by default) and `page_size` (by default 2 MiB to 20 MiB, by what is reserved).
public final class CachingProvider implements AllocatorProvider {
    /// For [java.util.ServiceLoader].
    public CachingProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "caching";
    }

    @Override
    public int priority() {
        return 100;
    }

    /// With its default source it needs virtual memory; a plain source (`caching:source=linear`) does not.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        return Availability.yes();
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        return new CachingAllocator(context, CachingOptions.read(context.options()));
    }
}
