package io.cistern.spi.catalog;

import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;

/// Finds the loader's catalogue.
final class Loader {
    private Loader() {}

    /// Returns the catalogue of the loader on the class path or module path, if there is one.
    static Optional<Catalog> catalog(List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        ClassLoader loader = Catalog.class.getClassLoader();
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return ServiceLoader.load(CatalogProvider.class, loader)
                .findFirst()
                .map(provider -> provider.discover(context != null ? context : loader, allocators, sources));
    }
}
