package io.cistern.loader;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.Spliterator;

/// Finds all providers of one service, so that a bad one is reported and hides no other.
///
/// 1. It takes the service loader's classes one by one: an error about one entry does not end the walk.
/// 2. It creates each provider and asks it what it is ([Inspection]); anything that the provider throws becomes
///    its problem.
/// 3. It refuses a class that is in two JARs, since the class loader would silently take the first.
///
/// [Providers] handles two classes that claim one name. Used once, by one thread.
///
/// @param <P> the providers' type
final class Discovery<P> {
    /// Far more than the bad entries of any class path. A class loader that fails for ever must not hang the
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
        DiscoveredProvider<P> one = new Inspection<>(service, provider, timeout).result();
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
}
