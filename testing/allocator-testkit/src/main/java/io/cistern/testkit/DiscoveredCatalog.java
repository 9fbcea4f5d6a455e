package io.cistern.testkit;

import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.CatalogProvider;
import java.util.ServiceLoader;

/// Finds the allocators and sources on the class path or module path: through the catalogue of
/// `cistern-pluggable-loader` if it is present, else through [ServiceLoader] directly.
public final class DiscoveredCatalog {
    private DiscoveredCatalog() {}

    /// Returns a catalogue of the allocators and sources.
    public static Catalog find() {
        return ServiceLoader.load(CatalogProvider.class)
                .findFirst()
                .map(provider -> provider.discover(Thread.currentThread().getContextClassLoader()))
                .orElseGet(DiscoveredCatalog::ofProviders);
    }

    private static Catalog ofProviders() {
        return Catalog.of(
                ServiceLoader.load(AllocatorProvider.class).stream()
                        .map(ServiceLoader.Provider::get)
                        .toList(),
                ServiceLoader.load(SegmentSourceProvider.class).stream()
                        .map(ServiceLoader.Provider::get)
                        .toList());
    }
}
