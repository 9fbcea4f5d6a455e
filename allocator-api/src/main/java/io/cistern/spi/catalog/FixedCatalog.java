package io.cistern.spi.catalog;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.CisternArtifacts;
import io.cistern.internal.names.Names;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.options.AllocatorSpec;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.stream.Stream;

/// An immutable catalogue of the providers that the program gave. It looks for no others.
final class FixedCatalog implements Catalog {
    private static final String NOTHING_GIVEN =
            "the catalogue has none; add cistern-pluggable-loader, or pass another to"
                    + " DeviceMemory.builder(driver).catalog(…)";

    private final Map<String, AllocatorProvider> allocators;
    private final Map<String, SegmentSourceProvider> sources;

    /// @throws ConfigurationException if two providers of a kind have the same name, a name is illegal, or
    ///     a provider is built for a newer SPI
    FixedCatalog(List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        this.allocators = byName("allocators", allocators, AllocatorProvider::name, AllocatorProvider::spiVersion);
        this.sources =
                byName("segment sources", sources, SegmentSourceProvider::name, SegmentSourceProvider::spiVersion);
    }

    @Override
    public AllocatorProvider allocator(String name) {
        return known(
                "allocator", name, allocators, CisternArtifacts.ofAllocators(allocators.keySet(), sources.keySet()));
    }

    @Override
    public SegmentSourceProvider source(String name) {
        return known("segment source", name, sources, sources.keySet());
    }

    @Override
    public List<Entry> entries() {
        Stream<Entry> first = allocators.values().stream().map(p -> entry(Kind.ALLOCATOR, p.name(), p, p.priority()));
        Stream<Entry> second = sources.values().stream().map(p -> entry(Kind.SOURCE, p.name(), p, 0));
        return Stream.concat(first, second).toList();
    }

    @Override
    public Choice choose(DeviceEnvironment environment) {
        return allocators.keySet().stream()
                .findFirst()
                .map(name -> new Choice(AllocatorSpec.parse(name), "the first that the program gave"))
                .orElseThrow(() -> new ConfigurationException("no allocator can be current: " + NOTHING_GIVEN));
    }

    private static Entry entry(Kind kind, String name, Object provider, int priority) {
        String origin = "the program, class " + provider.getClass().getName();
        return new Entry(kind, name, origin, priority, Optional.empty());
    }

    private static <P> P known(String what, String name, Map<String, P> providers, Collection<String> names) {
        P provider = providers.get(name);
        if (provider == null) {
            String known = names.isEmpty() ? ": " + NOTHING_GIVEN : "; " + CisternArtifacts.cure(name, names);
            throw new ConfigurationException("no " + what + " is named '" + name + "'" + known);
        }
        return provider;
    }

    private static <P> Map<String, P> byName(
            String what, List<P> providers, Function<P, String> name, ToIntFunction<P> spiVersion) {
        Map<String, P> known = new LinkedHashMap<>();
        for (P provider : providers) {
            int version = spiVersion.applyAsInt(provider);
            if (version > AllocatorProvider.SPI_VERSION) {
                throw new ConfigurationException("'" + name.apply(provider) + "' is built for version " + version
                        + " of the SPI, newer than version " + AllocatorProvider.SPI_VERSION + " here");
            }
            if (!Names.isLegal(name.apply(provider))) {
                throw new ConfigurationException(
                        provider.getClass().getName() + " " + Names.illegal(name.apply(provider)));
            }
            P other = known.putIfAbsent(name.apply(provider), provider);
            if (other != null) {
                throw new ConfigurationException("two " + what + " are named '" + name.apply(provider) + "': classes "
                        + other.getClass().getName() + " and "
                        + provider.getClass().getName());
            }
        }
        return known;
    }
}
