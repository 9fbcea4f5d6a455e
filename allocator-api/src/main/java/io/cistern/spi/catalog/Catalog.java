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

/// Finds providers by name, and chooses the current allocator if the program does not.
/// `cistern-pluggable-loader` implements this interface. A program without that loader creates a catalogue
/// with [#of].
public interface Catalog {
    /// Returns the provider of an allocator.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the name is unknown (the message lists the known
    ///     names, the nearest first), if two JARs claim it, or if the provider is built for a newer SPI
    AllocatorProvider allocator(String name);

    /// Returns the provider of a segment source.
    ///
    /// @throws io.cistern.errors.ConfigurationException as for [#allocator]
    SegmentSourceProvider source(String name);

    /// Returns all providers that were found, including broken and refused ones, in a stable order.
    List<Entry> entries();

    /// Returns the allocator that is current if the program names none.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the configuration is invalid; if it names an
    ///     allocator that does not exist or can't run here; or if it names none, and no allocator is
    ///     available or several share the highest priority
    Choice choose(DeviceEnvironment environment);

    /// Returns the full spec of an allocator. A spec that names a segment source stands for `caching` over
    /// that source, with the options given to the source, unless an allocator has the same name.
    default AllocatorSpec complete(AllocatorSpec spec) {
        boolean ofSource = knows(Kind.SOURCE, spec.name()) && !knows(Kind.ALLOCATOR, spec.name());
        return ofSource ? new AllocatorSpec("caching", Map.of("source", List.of(spec.text())), spec.text()) : spec;
    }

    /// Returns whether there is a usable provider with a name.
    default boolean knows(Kind kind, String name) {
        return entries().stream()
                .anyMatch(entry -> entry.kind() == kind
                        && entry.name().equals(name)
                        && entry.problem().isEmpty());
    }

    /// Returns the allocator that is current on a device if the program names none.
    ///
    /// @return the choice for all devices, unless a catalogue overrides this
    /// @throws io.cistern.errors.ConfigurationException as for [#choose(DeviceEnvironment)]
    default Choice choose(DeviceEnvironment environment, int device) {
        return choose(environment);
    }

    /// Looks for providers and configuration again, and returns the result as a new catalogue. This
    /// catalogue does not change.
    ///
    /// @return the new catalogue; this catalogue if its providers are fixed, as those of [#of] are
    default Catalog refreshed() {
        return this;
    }

    /// Looks for providers and configuration as [io.cistern.DeviceMemory#system()] does.
    ///
    /// @param allocators the program's own providers, which are added to those found
    /// @param sources the program's own providers, which are added to those found
    /// @throws io.cistern.errors.ConfigurationException if there is no loader on the class path
    ///     or module path
    static Catalog discover(List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        return ofLoader(allocators, sources)
                .orElseThrow(() -> new ConfigurationException(
                        "no catalogue of allocators: add cistern-pluggable-loader, or open DeviceMemory with"
                                + " your own Catalog"));
    }

    /// Returns the catalogue that [#discover] finds without providers of the program's own; an empty one if
    /// there is no loader on the class path or module path.
    static Catalog found() {
        return ofLoader(List.of(), List.of()).orElseGet(() -> of(List.of(), List.of()));
    }

    private static Optional<Catalog> ofLoader(List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        ClassLoader own = Catalog.class.getClassLoader();
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return ServiceLoader.load(CatalogProvider.class, own)
                .findFirst()
                .map(provider -> provider.discover(context != null ? context : own, allocators, sources));
    }

    /// Returns a catalogue of only the given providers; [#choose] returns the first allocator.
    ///
    /// @throws io.cistern.errors.ConfigurationException if two providers of a kind have the same name, if a
    ///     name is illegal, or if a provider is built for a newer version of the SPI
    static Catalog of(List<AllocatorProvider> allocators, List<SegmentSourceProvider> sources) {
        return new FixedCatalog(allocators, sources);
    }

    /// The kinds of providers.
    enum Kind {
        /// An allocator.
        ALLOCATOR,
        /// A segment source.
        SOURCE
    }

    /// One provider that was found.
    ///
    /// @param kind the kind of the provider
    /// @param name the provider's name; the name of its class if the provider failed to return one
    /// @param origin a human-readable text that says where the provider was found: a JAR, a folder, a
    ///     module or the program; for a plug-in also its digest
    /// @param priority the provider's priority; 0 for a source
    /// @param problem why the provider can't be used; empty if it can
    record Entry(Kind kind, String name, String origin, int priority, Optional<String> problem) {}

    /// The allocator that is current, and the reason.
    ///
    /// @param spec the allocator
    /// @param reason why this allocator was chosen, for example `highest priority of those available` or
    ///     `property cistern.allocator`
    record Choice(AllocatorSpec spec, String reason) {
        /// The beginning of each reason that [#isByPriority] recognises.
        public static final String HIGHEST_PRIORITY = "highest priority of those available";

        /// Returns whether the allocator's priority decided, rather than a setting.
        public boolean isByPriority() {
            return reason.startsWith(HIGHEST_PRIORITY);
        }
    }
}
