package io.cistern.testkit;

import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.CatalogProvider;
import java.util.ServiceLoader;

/// The allocators and sources on the class path or module path: the loader's catalogue, or without it the plain
/// providers.
public final class DiscoveredCatalog {
    private DiscoveredCatalog() {}

    /// Finds it.
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
