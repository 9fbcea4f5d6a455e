package io.cistern.cli;

import io.cistern.spi.Catalog;
import io.cistern.spi.CatalogProvider;
import java.util.ServiceLoader;

/// The allocators and segment sources on the class path and the module path.
final class Plugins {
    private Plugins() {}

    /// Discovers them.
    static Catalog catalog() {
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        return ServiceLoader.load(CatalogProvider.class, loader)
                .findFirst()
                .orElseThrow(() -> new UsageException("pluggable-loader is missing on the module path"))
                .discover(loader);
    }
}
