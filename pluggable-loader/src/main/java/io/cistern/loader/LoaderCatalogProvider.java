package io.cistern.loader;

import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Catalog;
import io.cistern.spi.CatalogProvider;
import io.cistern.spi.SegmentSourceProvider;

/// Makes the catalogue of everything that a class loader sees; found by the API as a service.
public final class LoaderCatalogProvider implements CatalogProvider {
    private final Settings settings;

    /// For the service loader: settings come from the process.
    public LoaderCatalogProvider() {
        this(Settings.ofProcess());
    }

    LoaderCatalogProvider(Settings settings) {
        this.settings = settings;
    }

    @Override
    public Catalog discover(ClassLoader loader) {
        Providers<AllocatorProvider> allocators =
                new Providers<>("allocator", new Discovery<>(Service.ALLOCATORS, loader).found());
        Providers<SegmentSourceProvider> sources =
                new Providers<>("segment source", new Discovery<>(Service.SOURCES, loader).found());
        return new LoaderCatalog(allocators, sources, new StartupChoice(allocators, settings));
    }
}
