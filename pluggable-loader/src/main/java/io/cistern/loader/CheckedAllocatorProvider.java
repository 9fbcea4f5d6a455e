package io.cistern.loader;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.GraphAllocator;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;

/// Wraps a plug-in's provider. It answers with the results of discovery, and turns the provider's breaches of
/// the SPI into errors that name the plug-in.
///
/// @param provider the plug-in's own provider
/// @param found the results of discovery
record CheckedAllocatorProvider(AllocatorProvider provider, DiscoveredProvider<AllocatorProvider> found)
        implements AllocatorProvider {
    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return found.name();
    }

    @Override
    public int priority() {
        return found.priority();
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
    public Optional<AllocatorSpec> redirect(AllocatorOptions options) {
        return found.answer("be opened", "redirect()", () -> provider.redirect(options));
    }

    @Override
    public boolean servesGraphs() {
        return found.answer("say whether it serves graphs", "servesGraphs()", provider::servesGraphs);
    }

    @Override
    public GraphAllocator openForGraphs(AllocatorContext context) {
        return found.answer("be opened", "open()", () -> provider.openForGraphs(context));
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        return found.answer("be opened", "open()", () -> provider.open(context));
    }
}
