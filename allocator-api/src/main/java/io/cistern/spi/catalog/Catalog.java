package io.cistern.spi.catalog;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.options.AllocatorSpec;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;

/// The providers that exist, by name, and which is current when the program does not say.
/// Implemented by the loader; a program without one builds its own with [#of].
public interface Catalog {
    /// The provider of an allocator.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the name is unknown (the message
    ///     lists the known ones, the nearest first), if two JARs claim it, or if it is of a
    ///     newer SPI
    AllocatorProvider allocator(String name);

    /// The provider of a segment source.
    ///
    /// @throws io.cistern.errors.ConfigurationException as [#allocator]
    SegmentSourceProvider source(String name);

    /// Everything that was found, the broken and the refused included, in a stable order.
    List<Entry> entries();

    /// The allocator to be current when the program names none.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the configuration names one that
    ///     does not exist
    Choice choose(DeviceEnvironment environment);

    /// The allocator that a spec means: a segment source is an allocator too, `caching` over
    /// it, unless an allocator has its name. Options of such a spec are the source's.
    default AllocatorSpec complete(AllocatorSpec spec) {
        boolean ofSource = knows(Kind.SOURCE, spec.name()) && !knows(Kind.ALLOCATOR, spec.name());
        return ofSource ? new AllocatorSpec("caching", Map.of("source", List.of(spec.text())), spec.text()) : spec;
    }

    /// Whether there is a usable provider of this name.
    default boolean knows(Kind kind, String name) {
        return entries().stream()
                .anyMatch(entry -> entry.kind() == kind
                        && entry.name().equals(name)
                        && entry.problem().isEmpty());
    }

    /// The allocator to be current on a device when the program names none.
    ///
    /// @return that of all devices, unless a catalogue knows better
    /// @throws io.cistern.errors.ConfigurationException if the configuration names one that
    ///     does not exist
    default Choice choose(DeviceEnvironment environment, int device) {
        return choose(environment);
    }

    /// What there is now: providers and configuration, looked for again. This one stays as it
    /// is.
    ///
    /// @return this, where nothing is looked for
    default Catalog refreshed() {
        return this;
    }

    /// Looks for providers and configuration as [io.cistern.DeviceMemory#system()] does.
    ///
    /// @param allocators the program's own, beside those that are found
    /// @param sources the program's own, beside those that are found
    /// @throws io.cistern.errors.ConfigurationException if there is no loader on the class path
    ///     or module path
    static Catalog discover(List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        ClassLoader loader = Catalog.class.getClassLoader();
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return ServiceLoader.load(CatalogProvider.class, loader)
                .findFirst()
                .map(provider -> provider.discover(context != null ? context : loader, allocators, sources))
                .orElseThrow(() -> new ConfigurationException(
                        "no catalogue of allocators: add cistern-pluggable-loader, or open DeviceMemory with a"
                                + " Catalog of your own"));
    }

    /// A catalogue of the given providers alone; the first allocator is the choice.
    static Catalog of(List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        return new FixedCatalog(allocators, sources);
    }

    /// What a provider provides.
    enum Kind {
        /// An allocator.
        ALLOCATOR,
        /// A segment source.
        SOURCE
    }

    /// One provider that was found.
    ///
    /// @param kind what it provides
    /// @param name its name, or its class's name if it could not say
    /// @param origin the JAR or module it came from, with the digest of a plug-in
    /// @param priority its priority; 0 for a source
    /// @param problem why it can't be used at all, or empty
    record Entry(Kind kind, String name, String origin, int priority, Optional<String> problem) {}

    /// Which allocator is current and why.
    ///
    /// @param spec the allocator
    /// @param reason for people, for example `highest priority of those available` or `property
    ///     cistern.allocator`
    record Choice(AllocatorSpec spec, String reason) {}
}
