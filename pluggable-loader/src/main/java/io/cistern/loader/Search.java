package io.cistern.loader;

import io.cistern.cuda.settings.Settings;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Catalog;
import io.cistern.spi.SegmentSourceProvider;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// Where providers are looked for, so that it can be done again. Immutable.
///
/// @param loader sees the class path or the module path
/// @param ownAllocators the program's own
/// @param ownSources the program's own
/// @param settings reads what is set now
/// @param patience with other people's providers
record Search(
        ClassLoader loader,
        List<AllocatorProvider> ownAllocators,
        List<SegmentSourceProvider> ownSources,
        Supplier<Settings> settings,
        Patience patience) {
    Search {
        ownAllocators = List.copyOf(ownAllocators);
        ownSources = List.copyOf(ownSources);
    }

    /// Looks everywhere.
    ///
    /// @param known plug-ins that were loaded before
    LoaderCatalog catalog(List<Plugin> known) {
        Settings now = settings.get();
        PluginDirectory directory = new PluginDirectory(now, known);
        List<Found<AllocatorProvider>> allocators = found(Service.ALLOCATORS, ownAllocators, directory.plugins());
        List<Found<SegmentSourceProvider>> sources = found(Service.SOURCES, ownSources, directory.plugins());
        allocators.addAll(Definitions.of(now, directory.libraries()));
        directory.refused().forEach(one -> allocators.add(refused(one)));
        Providers<AllocatorProvider> named = new Providers<>("allocator", allocators);
        return new LoaderCatalog(
                named,
                new Providers<>("segment source", sources),
                new StartupChoice(named, now),
                this,
                directory.plugins());
    }

    private <P> List<Found<P>> found(Service<P> service, List<P> own, List<Plugin> plugins) {
        List<Found<P>> found = new ArrayList<>(new Discovery<>(service, loader, patience).found());
        for (Plugin plugin : plugins) {
            if (!plugin.loader().mayProvide(service.type())) {
                continue;
            }
            new Discovery<>(service, plugin.loader(), patience)
                    .found().stream().map(one -> one.of(plugin)).forEach(found::add);
        }
        own.forEach(provider -> found.add(Inspection.ofProgram(service, provider)));
        return found;
    }

    private static Found<AllocatorProvider> refused(PluginDirectory.Refused one) {
        return Found.broken(
                Catalog.Kind.ALLOCATOR,
                String.valueOf(one.place().getFileName()),
                one.place().toString(),
                Optional.empty(),
                0,
                one.problem());
    }
}
