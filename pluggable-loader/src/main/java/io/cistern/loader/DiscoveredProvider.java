package io.cistern.loader;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.Names;
import io.cistern.spi.Availability;
import io.cistern.spi.catalog.Catalog.Entry;
import io.cistern.spi.catalog.Catalog.Kind;
import java.util.Optional;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// One provider that discovery found, usable or not. Immutable.
///
/// Invariant: `provider` is empty exactly when `problem` is not.
///
/// @param <P> the provider's type
/// @param kind the kind of object that it provides
/// @param className its class, or the services file that should have named one
/// @param place the JAR, folder or module that it came from
/// @param digest the digest of that place, if it is a plug-in
/// @param claim the name that it claims, empty if it reported none
/// @param priority its priority
/// @param provider the provider that serves requests
/// @param problem why it can't be used, worded to follow its name: `is built for …`, `fails to load: …`
record DiscoveredProvider<P>(
        Kind kind,
        String className,
        String place,
        Optional<Digest> digest,
        Optional<String> claim,
        int priority,
        Optional<P> provider,
        Optional<String> problem) {
    /// @param raw the provider, to be wrapped in its service's checks
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
        return self.with(Optional.empty(), Optional.of(service.checked().apply(raw, self)), Optional.empty());
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

    /// Returns this provider with a problem that arises only beside other providers, unless it already has
    /// one.
    DiscoveredProvider<P> refused(String why) {
        return problem.isPresent() ? this : with(digest, Optional.empty(), Optional.of(why));
    }

    static boolean isOurs(String className) {
        return className.startsWith("io.cistern.");
    }

    /// Returns this provider as one of a plug-in. The result names the plug-in's place, even if the class
    /// is Cistern's and so comes from the program.
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

    /// Returns its origin for messages: for a plug-in, its place with its digest.
    String origin() {
        return digest.isPresent() ? Digest.origin(place, digest.get().hex()) : place;
    }

    /// Returns its name, or its class's name if it reported none.
    String name() {
        return claim.orElse(className);
    }

    String who() {
        return Names.of(className, origin());
    }

    Entry entry() {
        return new Entry(kind, name(), origin(), priority, problem);
    }

    /// Asks a plug-in whether it can run. A check that throws or does not return counts as no, with the
    /// breach as the reason.
    Availability availability(Supplier<@Nullable Availability> question, ProbeTimeout timeout) {
        try {
            @Nullable
            Availability answer =
                    isOurs(className) ? question.get() : timeout.<@Nullable Availability>ask(name(), question::get);
            return answer == null ? Availability.no(who() + " returns null from availability()") : answer;
        } catch (TimeoutException e) {
            return Availability.no(who() + " " + timeout.exhausted("availability()"));
        } catch (RuntimeException | LinkageError | AssertionError error) {
            return Availability.no(who() + " fails in availability(): " + Problem.of(error));
        }
    }

    /// Asks a plug-in a question. Its exceptions pass through; a missing class and a null become a
    /// [ConfigurationException].
    ///
    /// @param what what it can't do in that case, for the message
    /// @param method the method that is asked, for the message
    <T> T answer(String what, String method, Supplier<@Nullable T> question) {
        @Nullable T answer;
        try {
            answer = question.get();
        } catch (LinkageError error) {
            throw new ConfigurationException(
                    "'" + name() + "' can't " + what + ": " + who() + " fails in " + method + ": " + Problem.of(error),
                    error);
        }
        if (answer == null) {
            throw new ConfigurationException(
                    "'" + name() + "' can't " + what + ": " + who() + " returns null from " + method);
        }
        return answer;
    }
}
