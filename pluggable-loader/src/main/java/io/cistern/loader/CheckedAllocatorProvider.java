package io.cistern.loader;

import io.cistern.errors.ConfigurationException;
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

    /// @throws ConfigurationException if the plug-in lacks a class or returns null
    @Override
    public List<? extends SpecOption<?>> options() {
        return CheckedAnswers.options(found, provider::options);
    }

    @Override
    public Availability availability(DeviceEnvironment environment) {
        return CheckedAnswers.availability(found, () -> provider.availability(environment));
    }

    /// @throws ConfigurationException if the plug-in lacks a class or returns null, besides the SPI's own
    ///     reasons
    @Override
    public Optional<AllocatorSpec> redirect(AllocatorOptions options) {
        return CheckedAnswers.redirect(found, () -> provider.redirect(options));
    }

    /// @throws ConfigurationException if the plug-in lacks a class
    @Override
    public boolean servesGraphs() {
        return CheckedAnswers.graphs(found, provider::servesGraphs);
    }

    /// @throws ConfigurationException if the plug-in lacks a class or returns null, besides the SPI's own
    ///     reasons
    @Override
    public GraphAllocator openForGraphs(AllocatorContext context) {
        return CheckedAnswers.opened(found, () -> provider.openForGraphs(context));
    }

    /// @throws ConfigurationException if the plug-in lacks a class or returns null, besides the SPI's own
    ///     reasons
    @Override
    public DeviceAllocator open(AllocatorContext context) {
        return CheckedAnswers.opened(found, () -> provider.open(context));
    }
}
