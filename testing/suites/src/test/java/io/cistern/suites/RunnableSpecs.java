package io.cistern.suites;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.DiscoveredCatalog;
import java.util.List;
import java.util.stream.Stream;

/// Lists the specs on which the suites for all allocators run.
public final class RunnableSpecs {
    /// The allocator that can build on any source.
    private static final String ON_ANY_SOURCE = "caching";

    private RunnableSpecs() {}

    /// Returns the specs of all allocators that can run on a driver: each by its name, unless it needs options,
    /// as adaptors need an upstream; and the caching one over each source.
    public static List<String> on(CudaDriver driver) {
        Catalog catalog = DiscoveredCatalog.find();
        try (DeviceMemory memory = DeviceMemory.builder(driver).catalog(catalog).open()) {
            DeviceEnvironment environment = memory.environment();
            List<String> allocators = names(catalog, Catalog.Kind.ALLOCATOR)
                    .filter(name ->
                            catalog.allocator(name).availability(environment).available())
                    .filter(name -> opensByName(memory, name))
                    .toList();
            Stream<String> onSources = names(catalog, Catalog.Kind.SOURCE)
                    .filter(_ -> allocators.contains(ON_ANY_SOURCE))
                    .filter(name ->
                            catalog.source(name).availability(environment).available())
                    .map(name -> ON_ANY_SOURCE + ":source=" + name)
                    .filter(spec -> opensByName(memory, spec));
            return Stream.concat(allocators.stream(), onSources).toList();
        }
    }

    private static boolean opensByName(DeviceMemory memory, String name) {
        try {
            memory.open(name).close();
            return true;
        } catch (ConfigurationException needsOptions) {
            return false;
        }
    }

    private static Stream<String> names(Catalog catalog, Catalog.Kind kind) {
        return catalog.entries().stream()
                .filter(entry -> entry.kind() == kind && entry.problem().isEmpty())
                .map(Catalog.Entry::name);
    }
}
