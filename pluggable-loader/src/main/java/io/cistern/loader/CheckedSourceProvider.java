package io.cistern.loader;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.options.SpecOption;
import java.util.List;

/// Wraps a plug-in's segment source provider, as [CheckedAllocatorProvider] does for an allocator.
///
/// @param provider the plug-in's own provider
/// @param found the results of discovery
record CheckedSourceProvider(SegmentSourceProvider provider, DiscoveredProvider<SegmentSourceProvider> found)
        implements SegmentSourceProvider {
    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return found.name();
    }

    @Override
    public List<? extends SpecOption<?>> options() {
        return found.answer("list its options", "options()", provider::options);
    }

    @Override
    public Availability availability(DeviceEnvironment environment) {
        return found.availability(() -> provider.availability(environment), ProbeTimeout.USUAL);
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        return found.answer("be opened", "open()", () -> provider.open(context));
    }
}
