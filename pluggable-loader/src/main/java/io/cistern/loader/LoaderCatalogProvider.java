package io.cistern.loader;

import io.cistern.cuda.settings.Settings;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.CatalogProvider;
import java.util.List;
import java.util.function.Supplier;

/// Makes the catalogue of everything that a class loader sees, that lies in the plug-in directory, and that is
/// defined; found by the API as a service.
public final class LoaderCatalogProvider implements CatalogProvider {
    private final Supplier<Settings> settings;
    private final Patience patience;

    /// For the service loader: settings come from the process.
    public LoaderCatalogProvider() {
        this(Settings::ofProcess, Patience.USUAL);
    }

    LoaderCatalogProvider(Supplier<Settings> settings, Patience patience) {
        this.settings = settings;
        this.patience = patience;
    }

    @Override
    public Catalog discover(ClassLoader loader) {
        return discover(loader, List.of(), List.of());
    }

    @Override
    public Catalog discover(
            ClassLoader loader, List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        return new Search(loader, allocators, sources, settings, patience).catalog(List.of());
    }
}
