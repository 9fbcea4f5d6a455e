package io.cistern.spi;

import java.util.List;

/// Makes the [Catalog] that [io.cistern.DeviceMemory#system()] uses; found by [java.util.ServiceLoader].
public interface CatalogProvider {
    /// Looks for providers with the given class loader.
    default Catalog discover(ClassLoader loader) {
        return discover(loader, List.of(), List.of());
    }

    /// Looks for providers with the given class loader; the program's own stand beside them, with the same rules
    /// for names.
    ///
    /// @param allocators the program's own
    /// @param sources the program's own
    Catalog discover(ClassLoader loader, List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources);
}
