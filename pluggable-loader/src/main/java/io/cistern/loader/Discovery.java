package io.cistern.loader;

import io.cistern.internal.names.Names;
import io.cistern.spi.AllocatorProvider;
import java.io.Serial;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.Spliterator;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Finds all providers of one service, so that a bad one is reported and hides no other.
///
/// 1. It takes the service loader's classes one by one: an error about one entry does not end the walk.
/// 2. It creates each provider and asks it for SPI version, name and priority. The version comes first, since no
///    other answer of a provider for a newer SPI can be relied on. Anything that the provider throws becomes its
///    problem. Third-party providers are asked with a [ProbeTimeout].
/// 3. It refuses a class that is in two JARs, since the class loader would silently take the first.
///
/// [Providers] handles two classes that claim one name. Used once, by one thread.
///
/// @param <P> the providers' type
final class Discovery<P> {
    /// Far more than the bad entries of any class path. A class loader that keeps failing must not hang the
    /// program.
    private static final int MAX_ERRORS = 1000;

    private final Service<P> service;
    private final ClassLoader loader;
    private final ProbeTimeout timeout;
    private final ServicesFiles files;
    private final Set<String> seen = new HashSet<>();
    private final List<DiscoveredProvider<P>> found = new ArrayList<>();

    Discovery(Service<P> service, ClassLoader loader, ProbeTimeout timeout) {
        this.service = service;
        this.loader = loader;
        this.timeout = timeout;
        this.files = new ServicesFiles(service.type(), loader);
    }

    /// Returns all providers, in the service loader's order.
    List<DiscoveredProvider<P>> found() {
        Spliterator<ServiceLoader.Provider<P>> walk =
                ServiceLoader.load(service.type(), loader).stream().spliterator();
        for (int errors = 0; errors < MAX_ERRORS; errors++) {
            try {
                walk.forEachRemaining(this::take);
                break;
            } catch (ServiceConfigurationError | LinkageError error) {
                takeBroken(error);
            }
        }
        return found;
    }

    private void take(ServiceLoader.Provider<P> provider) {
        String className = provider.type().getName();
        seen.add(className);
        DiscoveredProvider<P> one = inspected(provider, className, Origin.of(provider.type()));
        List<String> origins = files.origins(className);
        found.add(origins.size() < 2 ? one : one.refused(inManyPlaces(origins)));
    }

    private void takeBroken(Throwable error) {
        ServicesFiles.Place place = files.culprit(error, seen);
        seen.add(place.className());
        found.add(DiscoveredProvider.broken(
                service.kind(), place.className(), place.origin(), Optional.empty(), 0, Problem.loading(error)));
    }

    private static String inManyPlaces(List<String> origins) {
        return "is in " + String.join(" and in ", origins) + "; remove all but one";
    }

    private DiscoveredProvider<P> inspected(Supplier<P> source, String className, String origin) {
        if (DiscoveredProvider.isOurs(className)) {
            return asked(service, source, className, origin);
        }
        try {
            return timeout.ask(className, () -> asked(service, source, className, origin));
        } catch (TimeoutException e) {
            return DiscoveredProvider.broken(
                    service.kind(),
                    className,
                    origin,
                    Optional.empty(),
                    0,
                    timeout.exhausted("questions about itself"));
        }
    }

    static <P> DiscoveredProvider<P> ofProgram(Service<P> service, P provider) {
        String className = provider.getClass().getName();
        return asked(service, () -> provider, className, "the program, class " + className);
    }

    private static <P> DiscoveredProvider<P> asked(
            Service<P> service, Supplier<P> source, String className, String origin) {
        Optional<String> claim = Optional.empty();
        try {
            P provider = made(source);
            int version = answer("spiVersion()", () -> service.spiVersion().applyAsInt(provider));
            if (version > AllocatorProvider.SPI_VERSION) {
                claim = nameIfItCan(service, provider);
            }
            requireKnown(version);
            String name = name(service, provider);
            claim = Optional.of(name);
            int priority = answer("priority()", () -> service.priority().applyAsInt(provider));
            return DiscoveredProvider.sound(service, className, origin, name, priority, provider);
        } catch (Refusal refusal) {
            return DiscoveredProvider.broken(service.kind(), className, origin, claim, 0, refusal.problem);
        }
    }

    private static <P> P made(Supplier<P> source) throws Refusal {
        try {
            return source.get();
        } catch (ServiceConfigurationError | LinkageError error) {
            throw new Refusal(Problem.loading(error));
        }
    }

    private static void requireKnown(int version) throws Refusal {
        if (version > AllocatorProvider.SPI_VERSION) {
            throw new Refusal("is built for version " + version + " of the SPI, newer than version "
                    + AllocatorProvider.SPI_VERSION + " here; update Cistern or take an older release of the plug-in");
        }
        if (version < 1) {
            throw new Refusal("says it is built for version " + version + " of the SPI, which never existed");
        }
    }

    private static <P> Optional<String> nameIfItCan(Service<P> service, P provider) {
        try {
            return Optional.of(name(service, provider));
        } catch (Refusal refusal) {
            return Optional.empty();
        }
    }

    private static <P> String name(Service<P> service, P provider) throws Refusal {
        String name = answer("name()", () -> service.name().apply(provider));
        if (!Names.isLegal(name)) {
            throw new Refusal(Names.illegal(name));
        }
        return name;
    }

    private static <T> T answer(String call, Callable<@Nullable T> question) throws Refusal {
        @Nullable T answer;
        try {
            answer = question.call();
        } catch (Exception | LinkageError | AssertionError error) {
            throw new Refusal("fails in " + call + ": " + Problem.of(error));
        }
        if (answer == null) {
            throw new Refusal("returns null from " + call);
        }
        return answer;
    }

    private static final class Refusal extends Exception {
        @Serial
        private static final long serialVersionUID = 1L;

        private final String problem;

        Refusal(String problem) {
            super(problem);
            this.problem = problem;
        }
    }
}
