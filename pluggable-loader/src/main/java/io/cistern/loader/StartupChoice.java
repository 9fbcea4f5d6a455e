package io.cistern.loader;

import io.cistern.ModuleSupport;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.SettingProblems;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.Catalog.Choice;
import io.cistern.spi.options.AllocatorSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// Chooses the current allocator if the program does not name one. The first row that applies decides:
///
/// | source | how | if it can't be used |
/// |---|---|---|
/// | property | `-Dcistern.device.N.allocator=SPEC`, for all devices `-Dcistern.allocator=SPEC` | an error |
/// | environment variable | `CISTERN_DEVICE_N_ALLOCATOR=SPEC`, `CISTERN_ALLOCATOR=SPEC` | an error |
/// | file | the same keys in the file that `cistern.config` names | an error |
/// | priority | the highest above 0 of those that can run here; two that share it are an error | an error |
///
/// So an allocator that a setting names is never silently replaced, and an added JAR changes the default
/// only if its priority is above all others. Immutable.
final class StartupChoice {
    private static final String HOW = "name one with -Dcistern.allocator=NAME or CISTERN_ALLOCATOR=NAME";

    private final Providers<AllocatorProvider> allocators;
    private final Settings settings;

    StartupChoice(Providers<AllocatorProvider> allocators, Settings settings) {
        this.allocators = allocators;
        this.settings = settings;
    }

    /// Chooses the allocator for all devices.
    ///
    /// @param catalog completes the spec that was named: a segment source also serves as an allocator
    /// @throws ConfigurationException if the named allocator can't be used; if none was named and no single one
    ///     has the highest priority; or if an unknown setting is set; then the
    ///     message names all wrong settings
    Choice choose(DeviceEnvironment environment, Catalog catalog) {
        return choose(settings.get(Setting.ALLOCATOR), environment, catalog);
    }

    /// Chooses the allocator for one device.
    ///
    /// @throws ConfigurationException for the same reasons
    Choice choose(DeviceEnvironment environment, int device, Catalog catalog) {
        return choose(settings.get(Setting.DEVICE_ALLOCATOR, Setting.ALLOCATOR, device), environment, catalog);
    }

    private Choice choose(Optional<Settings.Value> set, DeviceEnvironment environment, Catalog catalog) {
        if (!SettingProblems.of(settings).isEmpty()) {
            throw new ConfigurationException(
                    SettingProblems.all(settings, null, spec -> problems(spec, environment, catalog)));
        }
        return set.map(value -> named(value, environment, catalog)).orElseGet(() -> highest(environment));
    }

    private Choice named(Settings.Value set, DeviceEnvironment environment, Catalog catalog) {
        String by = set.source();
        try {
            return new Choice(available(set.text(), environment, catalog), by);
        } catch (ConfigurationException e) {
            ConfigurationException first = new ConfigurationException(by + ": " + e.getMessage(), e);
            throw new ConfigurationException(
                    SettingProblems.all(settings, first, spec -> problems(spec, environment, catalog)), e);
        }
    }

    private List<String> problems(String text, DeviceEnvironment environment, Catalog catalog) {
        try {
            available(text, environment, catalog);
            return ModuleSupport.problemsOfSpec(text, catalog);
        } catch (ConfigurationException e) {
            return List.of(String.valueOf(e.getMessage()));
        }
    }

    private AllocatorSpec available(String text, DeviceEnvironment environment, Catalog catalog) {
        AllocatorSpec spec = catalog.complete(AllocatorSpec.parse(text));
        Availability availability = allocators.get(spec.name()).availability(environment);
        if (!availability.available()) {
            throw new ConfigurationException(
                    "allocator '" + spec.name() + "' can't run here: " + availability.reason());
        }
        return spec;
    }

    private Choice highest(DeviceEnvironment environment) {
        List<Candidate> candidates = new ArrayList<>();
        for (DiscoveredProvider<AllocatorProvider> one : allocators.sound()) {
            if (one.priority() > 0) {
                candidates.add(new Candidate(one, one.provider().orElseThrow().availability(environment)));
            }
        }
        List<DiscoveredProvider<AllocatorProvider>> best = best(candidates);
        if (best.isEmpty()) {
            throw new ConfigurationException(
                    "no allocator can be current: " + why(candidates) + allocators.unreadable() + "; " + HOW);
        }
        if (best.size() > 1) {
            throw new ConfigurationException(
                    "no allocator can be current: priority " + best.getFirst().priority()
                            + ", the highest of those available, is claimed by " + names(best) + "; " + HOW);
        }
        List<DiscoveredProvider<AllocatorProvider>> broken = allocators.broken();
        warnOfLost(broken, best.getFirst());
        return new Choice(
                AllocatorSpec.parse(best.getFirst().name()),
                Choice.HIGHEST_PRIORITY
                        + (broken.isEmpty() ? "" : "; left out, since they can't be used: " + broken.size()));
    }

    private static List<DiscoveredProvider<AllocatorProvider>> best(List<Candidate> candidates) {
        List<DiscoveredProvider<AllocatorProvider>> available = candidates.stream()
                .filter(one -> one.availability().available())
                .map(Candidate::found)
                .toList();
        int highest =
                available.stream().mapToInt(DiscoveredProvider::priority).max().orElse(0);
        return available.stream().filter(one -> one.priority() == highest).toList();
    }

    private static String why(List<Candidate> candidates) {
        return candidates.isEmpty()
                ? "none with a priority above 0 was found"
                : candidates.stream()
                        .map(one -> "'" + one.found().name() + "' can't run here ("
                                + one.availability().reason() + ")")
                        .collect(Collectors.joining(", "));
    }

    private static String names(List<DiscoveredProvider<AllocatorProvider>> found) {
        return found.stream()
                .map(one -> "'" + one.name() + "' of " + one.origin())
                .collect(Collectors.joining(" and "));
    }

    /// Warns if a broken provider would have been current. Otherwise a second copy of its JAR would silently
    /// cost the program its allocator.
    private static void warnOfLost(
            List<DiscoveredProvider<AllocatorProvider>> broken, DiscoveredProvider<AllocatorProvider> current) {
        for (DiscoveredProvider<AllocatorProvider> one : broken) {
            if (one.priority() > current.priority()) {
                System.getLogger(StartupChoice.class.getName())
                        .log(
                                System.Logger.Level.WARNING,
                                "allocator ''{0}'' is current, since ''{1}'' can''t be used: {2} {3}",
                                current.name(),
                                one.name(),
                                one.who(),
                                one.problem().orElseThrow());
                return;
            }
        }
    }

    private record Candidate(DiscoveredProvider<AllocatorProvider> found, Availability availability) {}
}
