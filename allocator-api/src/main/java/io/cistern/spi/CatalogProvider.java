package io.cistern.spi;

/// Makes the [Catalog] that [io.cistern.DeviceMemory#system()] uses; found by [java.util.ServiceLoader].
public interface CatalogProvider {
    /// Looks for providers with the given class loader.
    Catalog discover(ClassLoader loader);
}
