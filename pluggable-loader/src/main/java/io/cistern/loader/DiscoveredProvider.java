package io.cistern.loader;

import io.cistern.spi.catalog.Catalog.Entry;
import io.cistern.spi.catalog.Catalog.Kind;
import java.util.Optional;

/// One provider that was found, sound or not. Immutable.
///
/// Equation: `provider` is empty exactly when `problem` is not.
///
/// @param <P> the provider's type
/// @param kind what it provides
/// @param className its class, or the services file that should have named one
/// @param place the JAR, folder or module it came from
/// @param digest of that, if it is a plug-in
/// @param claim the name it claims, empty if it could not say
/// @param priority its priority
/// @param provider what to ask for memory
/// @param problem why it can't be used, as what is said of it: `is built for …`, `fails to load: …`
record DiscoveredProvider<P>(
        Kind kind,
        String className,
        String place,
        Optional<Digest> digest,
        Optional<String> claim,
        int priority,
        Optional<P> provider,
        Optional<String> problem) {
    /// @param raw the provider, which gets its service's checks before it
    static <P> DiscoveredProvider<P> sound(
            Service<P> service, String className, String place, String name, int priority, P raw) {
        DiscoveredProvider<P> self = new DiscoveredProvider<>(
                service.kind(),
                className,
                place,
                Optional.empty(),
                Optional.of(name),
                priority,
                Optional.empty(),
                Optional.empty());
        return self.with(Optional.empty(), Optional.of(service.checked(raw, self)), Optional.empty());
    }

    static <P> DiscoveredProvider<P> broken(
            Kind kind, String className, String place, Optional<String> claim, int priority, String problem) {
        return new DiscoveredProvider<>(
                kind, className, place, Optional.empty(), claim, priority, Optional.empty(), Optional.of(problem));
    }

    private DiscoveredProvider<P> with(
            Optional<Digest> digestThen, Optional<P> providerThen, Optional<String> problemThen) {
        return new DiscoveredProvider<>(kind, className, place, digestThen, claim, priority, providerThen, problemThen);
    }

    /// This one with a problem that shows only beside others; a problem of its own stays.
    DiscoveredProvider<P> refused(String why) {
        return problem.isPresent() ? this : with(digest, Optional.empty(), Optional.of(why));
    }

    /// Whether a class is Cistern's own.
    static boolean isOurs(String className) {
        return className.startsWith("io.cistern.");
    }

    /// This one as a plug-in's. What has a class of Cistern's is told with the plug-in's place too: the class
    /// itself comes from the program, whoever brings it once more.
    DiscoveredProvider<P> of(Plugin plugin) {
        String home = plugin.place().toString();
        return new DiscoveredProvider<>(
                kind,
                className,
                place.contains(home) ? place : home,
                Optional.of(plugin.digest()),
                claim,
                priority,
                provider,
                problem);
    }

    /// Where it came from, for people: a plug-in's place with its digest.
    String origin() {
        return digest.isPresent() ? Digest.origin(place, digest.get().hex()) : place;
    }

    /// Its name, or its class's name if it could not say.
    String name() {
        return claim.orElse(className);
    }

    /// For people: class and place.
    String who() {
        return className + " of " + origin();
    }

    Entry entry() {
        return new Entry(kind, name(), origin(), priority, problem);
    }
}
