package io.cistern.spi.catalog;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import java.util.List;

/// Makes the [Catalog] that [io.cistern.DeviceMemory#system()] uses. [java.util.ServiceLoader] finds it.
public interface CatalogProvider {
    /// Looks for providers with the given class loader.
    Catalog discover(ClassLoader loader);

    /// Looks for providers with the given class loader, and adds the program's own. The same rules for
    /// names apply to all of them.
    ///
    /// @param allocators the program's own
    /// @param sources the program's own
    /// @throws ConfigurationException if the program gives any, and this implementation accepts none
    default Catalog discover(
            ClassLoader loader, List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        if (!allocators.isEmpty() || !sources.isEmpty()) {
            throw new ConfigurationException(getClass().getName() + " accepts no providers but those that it finds");
        }
        return discover(loader);
    }
}
