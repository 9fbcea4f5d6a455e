package io.cistern.loader;

import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.stream.Stream;

/// The results of discovery, with the choice of the current allocator. Immutable; entries are ordered by kind,
/// then by name.
///
/// @param allocators the allocators
/// @param sources the segment sources
/// @param startup the choice of the current allocator
/// @param search the search that found all this
/// @param plugins the plug-ins of the plug-in directory
record LoaderCatalog(
        Providers<AllocatorProvider> allocators,
        Providers<SegmentSourceProvider> sources,
        StartupChoice startup,
        ProviderScan search,
        List<Plugin> plugins)
        implements Catalog {
    @Override
    public AllocatorProvider allocator(String name) {
        return allocators.get(name);
    }

    @Override
    public SegmentSourceProvider source(String name) {
        return sources.get(name);
    }

    @Override
    public List<Entry> entries() {
        return Stream.concat(allocators.entries(), sources.entries()).toList();
    }

    @Override
    public boolean knows(Kind kind, String name) {
        return (kind == Kind.SOURCE ? sources : allocators).knows(name);
    }

    @Override
    public Choice choose(DeviceEnvironment environment) {
        return startup.choose(environment, this);
    }

    @Override
    public Choice choose(DeviceEnvironment environment, int device) {
        return startup.choose(environment, device, this);
    }

    @Override
    public Catalog refreshed() {
        return search.catalog(plugins);
    }
}
