package io.cistern.loader;

import io.cistern.cuda.settings.Settings;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.CatalogProvider;
import java.util.List;
import java.util.function.Supplier;

/// Creates the catalogue of all providers that a class loader sees, that are in the plug-in directory, or that
/// are defined by settings. The API finds this class as a service.
public final class LoaderCatalogProvider implements CatalogProvider {
    private final Supplier<Settings> settings;
    private final ProbeTimeout timeout;

    /// Creates the provider for the service loader. Settings come from the process.
    public LoaderCatalogProvider() {
        this(Settings::ofProcess, ProbeTimeout.USUAL);
    }

    LoaderCatalogProvider(Supplier<Settings> settings, ProbeTimeout timeout) {
        this.settings = settings;
        this.timeout = timeout;
    }

    @Override
    public Catalog discover(ClassLoader loader) {
        return discover(loader, List.of(), List.of());
    }

    @Override
    public Catalog discover(
            ClassLoader loader, List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        return new ProviderScan(loader, allocators, sources, settings, timeout).catalog(List.of());
    }
}
