package io.cistern.spi.catalog;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import java.util.List;

/// Creates the [Catalog] that [io.cistern.DeviceMemory#system()] uses. [java.util.ServiceLoader] finds the
/// implementation.
public interface CatalogProvider {
    /// Looks for providers with the given class loader.
    Catalog discover(ClassLoader loader);

    /// Looks for providers with the given class loader, and adds the program's own. The same rules for
    /// names apply to all of them.
    ///
    /// @param allocators the program's own allocators
    /// @param sources the program's own segment sources
    /// @throws ConfigurationException if the program gives any, but this implementation accepts none
    default Catalog discover(
            ClassLoader loader, List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        if (!allocators.isEmpty() || !sources.isEmpty()) {
            throw new ConfigurationException(getClass().getName() + " accepts no providers but those that it finds");
        }
        return discover(loader);
    }
}
