package io.cistern.loader;

import io.cistern.internal.names.Names;
import io.cistern.spi.AllocatorProvider;
import java.io.Serial;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Creates one provider and asks it for SPI version, name and priority. The version comes first, since no other
/// answer of a provider for a newer SPI can be relied on. Used once, by one thread.
///
/// Other people's providers are asked with a [ProbeTimeout].
///
/// @param <P> the provider's type
final class Inspection<P> {
    private final Service<P> service;
    private final Supplier<P> source;
    private final String className;
    private final String origin;
    private final ProbeTimeout timeout;
    private Optional<String> claim = Optional.empty();

    Inspection(Service<P> service, ServiceLoader.Provider<P> source, ProbeTimeout timeout) {
        this(service, source, source.type().getName(), Origin.of(source.type()), timeout);
    }

    private Inspection(Service<P> service, Supplier<P> source, String className, String origin, ProbeTimeout timeout) {
        this.service = service;
        this.source = source;
        this.className = className;
        this.origin = origin;
        this.timeout = timeout;
    }

    /// Asks a provider that the program created itself.
    static <P> DiscoveredProvider<P> ofProgram(Service<P> service, P provider) {
        String className = provider.getClass().getName();
        return new Inspection<>(
                        service, () -> provider, className, "the program, class " + className, ProbeTimeout.USUAL)
                .asked();
    }

    /// Returns the provider, sound or with its problem.
    DiscoveredProvider<P> result() {
        if (DiscoveredProvider.isOurs(className)) {
            return asked();
        }
        try {
            return timeout.ask(className, this::asked);
        } catch (TimeoutException e) { // the thread that hangs may still change `claim`
            return DiscoveredProvider.broken(
                    service.kind(),
                    className,
                    origin,
                    Optional.empty(),
                    0,
                    timeout.exhausted("questions about itself"));
        }
    }

    private DiscoveredProvider<P> asked() {
        try {
            P provider = made();
            int version = answer("spiVersion()", () -> service.spiVersion().applyAsInt(provider));
            if (version > AllocatorProvider.SPI_VERSION) {
                claim = nameIfItCan(provider);
            }
            requireKnown(version);
            claim = Optional.of(name(provider));
            int priority = answer("priority()", () -> service.priority().applyAsInt(provider));
            return DiscoveredProvider.sound(service, className, origin, claim.orElseThrow(), priority, provider);
        } catch (Refusal refusal) {
            return DiscoveredProvider.broken(service.kind(), className, origin, claim, 0, refusal.problem);
        }
    }

    private P made() throws Refusal {
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

    private Optional<String> nameIfItCan(P provider) {
        try {
            return Optional.of(name(provider));
        } catch (Refusal refusal) {
            return Optional.empty();
        }
    }

    private String name(P provider) throws Refusal {
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

    /// Ends an inspection with a problem.
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
