package io.cistern;

import io.cistern.cuda.CudaDrivers;
import io.cistern.spi.Catalog;
import io.cistern.spi.CatalogProvider;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/// Opens the process's own device memory when it is first asked for.
final class SystemDeviceMemory {
    static final DeviceMemory INSTANCE = DeviceMemory.open(CudaDrivers.openBest(), discover());

    static {
        Opened.memory = INSTANCE;
    }

    private SystemDeviceMemory() {}

    /// Finds the catalogue that the loader module makes.
    private static Catalog discover() {
        ClassLoader loader = DeviceMemory.class.getClassLoader();
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return ServiceLoader.load(CatalogProvider.class, loader)
                .findFirst()
                .map(provider -> provider.discover(context != null ? context : loader))
                .orElseThrow(() -> new ConfigurationException(
                        "no catalogue of allocators: add pluggable-loader to the class path, or open DeviceMemory with a"
                                + " Catalog of your own"));
    }

    /// Tells what was opened, without opening it.
    static final class Opened {
        static volatile @Nullable DeviceMemory memory;

        private Opened() {}
    }
}
