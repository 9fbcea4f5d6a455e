package io.cistern.loader;

import io.cistern.cuda.settings.Settings;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Stream;

/// Searches all places for providers; it can be repeated. Immutable.
///
/// @param loader the class loader, which sees the class path or the module path
/// @param ownAllocators the program's own allocators
/// @param ownSources the program's own segment sources
/// @param settings reads the present settings
/// @param timeout the time limit for third-party providers
record ProviderScan(
        ClassLoader loader,
        List<AllocatorProvider> ownAllocators,
        List<SegmentSourceProvider> ownSources,
        Supplier<Settings> settings,
        ProbeTimeout timeout) {
    ProviderScan {
        ownAllocators = List.copyOf(ownAllocators);
        ownSources = List.copyOf(ownSources);
    }

    LoaderCatalog catalog(List<Plugin> known) {
        Settings now = settings.get();
        PluginDirectory directory = new PluginDirectory(now, known);
        List<DiscoveredProvider<AllocatorProvider>> allocators =
                found(Service.ALLOCATORS, ownAllocators, directory.plugins);
        List<DiscoveredProvider<SegmentSourceProvider>> sources = found(Service.SOURCES, ownSources, directory.plugins);
        LostServices.among(allocators, loader).ifPresent(allocators::add);
        List<PluginDirectory.Refused> refused = new ArrayList<>(directory.refused);
        directory.plugins.stream()
                .filter(plugin -> isOfNone(plugin, allocators) && isOfNone(plugin, sources))
                .forEach(plugin -> refused.add(new PluginDirectory.Refused(plugin.place(), plugin.offersNothing())));
        refused.forEach(one -> allocators.add(refused(one)));
        allocators.addAll(DefinedAllocator.of(now, directory.libraries));
        Providers<SegmentSourceProvider> namedSources = new Providers<>("segment source", sources);
        Providers<AllocatorProvider> named = new Providers<>("allocator", allocators, namedSources);
        Stream.concat(named.broken().stream(), namedSources.broken().stream()).forEach(ProviderScan::tell);
        return new LoaderCatalog(named, namedSources, new StartupChoice(named, now), this, directory.plugins);
    }

    private <P> List<DiscoveredProvider<P>> found(Service<P> service, List<P> own, List<Plugin> plugins) {
        List<DiscoveredProvider<P>> found = new ArrayList<>(new Discovery<>(service, loader, timeout).found());
        for (Plugin plugin : plugins) {
            if (!plugin.loader().mayProvide(service.type())) {
                continue;
            }
            new Discovery<>(service, plugin.loader(), timeout)
                    .found().stream().map(one -> one.of(plugin)).forEach(found::add);
        }
        own.forEach(provider -> found.add(Discovery.ofProgram(service, provider)));
        return found;
    }

    private static boolean isOfNone(Plugin plugin, List<? extends DiscoveredProvider<?>> found) {
        return found.stream().allMatch(one -> one.digest().stream().noneMatch(plugin.digest()::equals));
    }

    /// Logs a provider that can't be used. Perhaps nobody asks for it, but the person who installed it expects
    /// it to work.
    private static void tell(DiscoveredProvider<?> broken) {
        System.getLogger(ProviderScan.class.getName())
                .log(
                        System.Logger.Level.WARNING,
                        broken.who() + " " + broken.problem().orElseThrow());
    }

    private static DiscoveredProvider<AllocatorProvider> refused(PluginDirectory.Refused one) {
        return DiscoveredProvider.broken(
                Catalog.Kind.ALLOCATOR,
                String.valueOf(one.place().getFileName()),
                one.place().toString(),
                Optional.empty(),
                0,
                one.problem());
    }
}
