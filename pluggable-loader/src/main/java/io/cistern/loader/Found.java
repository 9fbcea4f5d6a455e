package io.cistern.loader;

import io.cistern.spi.Catalog.Entry;
import io.cistern.spi.Catalog.Kind;
import java.util.Optional;

/// One provider that was found, sound or not. Immutable.
///
/// Equation: `provider` is empty exactly when `problem` is not.
///
/// @param <P> the provider's type
/// @param kind what it provides
/// @param className its class, or the services file that should have named one
/// @param origin the JAR, folder or module it came from
/// @param claim the name it claims, empty if it could not say
/// @param priority its priority
/// @param provider what to ask for memory
/// @param problem why it can't be used, as what is said of it: `is built for …`, `fails to load: …`
record Found<P>(
        Kind kind,
        String className,
        String origin,
        Optional<String> claim,
        int priority,
        Optional<P> provider,
        Optional<String> problem) {
    /// @param raw the provider, which gets its service's checks before it
    static <P> Found<P> sound(
            Service<P> service, String className, String origin, String name, int priority, P raw) {
        Kind kind = service.kind();
        Found<P> self =
                new Found<>(kind, className, origin, Optional.of(name), priority, Optional.empty(), Optional.empty());
        P checked = service.checked(raw, self);
        return new Found<>(kind, className, origin, self.claim, priority, Optional.of(checked), Optional.empty());
    }

    static <P> Found<P> broken(
            Kind kind, String className, String origin, Optional<String> claim, int priority, String problem) {
        return new Found<>(kind, className, origin, claim, priority, Optional.empty(), Optional.of(problem));
    }

    /// This one with a problem that shows only beside others; a problem of its own stays.
    Found<P> refused(String why) {
        return problem.isPresent() ? this : broken(kind, className, origin, claim, priority, why);
    }

    /// Whether a class is Cistern's own.
    static boolean isOurs(String className) {
        return className.startsWith("io.cistern.");
    }

    /// This one with another origin.
    Found<P> from(String otherOrigin) {
        return new Found<>(kind, className, otherOrigin, claim, priority, provider, problem);
    }

    /// Its name, or its class's name if it could not say.
    String name() {
        return claim.orElse(className);
    }

    /// For people: class and place.
    String who() {
        return className + " of " + origin;
    }

    Entry entry() {
        return new Entry(kind, name(), origin, priority, problem);
    }
}
