package io.cistern.loader;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.CisternArtifacts;
import io.cistern.spi.catalog.Catalog.Entry;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The providers of one kind, by name. If several claim one name, none of them gets it, whatever their order;
/// other names still work. Immutable.
///
/// @param <P> the providers' type
final class Providers<P> {
    private final String what;
    private final @Nullable Providers<?> sources;
    private final Map<String, List<DiscoveredProvider<P>>> named = new TreeMap<>();
    private final List<DiscoveredProvider<P>> nameless = new ArrayList<>();

    /// @param what the word for one of them in messages, such as `allocator`
    Providers(String what, List<DiscoveredProvider<P>> found) {
        this(what, found, null);
    }

    /// @param sources the segment sources, each of which also serves as an allocator
    Providers(String what, List<DiscoveredProvider<P>> found, @Nullable Providers<?> sources) {
        this.what = what;
        this.sources = sources;
        Map<String, List<DiscoveredProvider<P>>> claims = new LinkedHashMap<>();
        for (DiscoveredProvider<P> one : found) {
            (one.claim().isPresent() ? claims.computeIfAbsent(one.name(), _ -> new ArrayList<>()) : nameless).add(one);
        }
        for (Map.Entry<String, List<DiscoveredProvider<P>>> claim : claims.entrySet()) {
            named.put(claim.getKey(), withoutRivals(claim.getValue()));
        }
        nameless.sort(Comparator.comparing(DiscoveredProvider::who));
    }

    P get(String name) {
        List<DiscoveredProvider<P>> claimants = named.get(name);
        if (claimants == null) {
            throw new ConfigurationException("no " + what + " is named '" + name + "'; " + cure(name));
        }
        DiscoveredProvider<P> one = claimants.getFirst();
        return one.provider()
                .orElseThrow(() -> new ConfigurationException(what + " '" + name + "' can't be used: " + one.who() + " "
                        + one.problem().orElseThrow()));
    }

    private String cure(String name) {
        if (sources != null && sources.named.containsKey(name)) {
            sources.get(name);
            return "it is a segment source: use it as caching:source=" + name;
        }
        Set<String> known = sources == null ? Set.of() : sources.named.keySet();
        return CisternArtifacts.cure(name, CisternArtifacts.ofAllocators(named.keySet(), known)) + unreadable();
    }

    boolean knows(String name) {
        List<DiscoveredProvider<P>> claimants = named.get(name);
        return claimants != null && claimants.getFirst().provider().isPresent();
    }

    /// Returns the providers that can be used, by name.
    List<DiscoveredProvider<P>> sound() {
        return all().filter(one -> one.provider().isPresent()).toList();
    }

    List<DiscoveredProvider<P>> broken() {
        return all().filter(one -> one.provider().isEmpty()).toList();
    }

    /// Returns all entries by name; providers that reported no name come last.
    Stream<Entry> entries() {
        return all().map(DiscoveredProvider::entry);
    }

    private Stream<DiscoveredProvider<P>> all() {
        return Stream.concat(named.values().stream().flatMap(List::stream), nameless.stream());
    }

    /// Returns a text about the providers that reported no name: the missing one may be among them.
    String unreadable() {
        return nameless.stream()
                .map(one -> "; " + one.who() + " " + one.problem().orElseThrow())
                .collect(Collectors.joining());
    }

    private static <P> List<DiscoveredProvider<P>> withoutRivals(List<DiscoveredProvider<P>> claimants) {
        if (claimants.size() == 1) {
            return claimants;
        }
        List<DiscoveredProvider<P>> sorted = claimants.stream()
                .sorted(Comparator.comparing(DiscoveredProvider::who))
                .toList();
        return sorted.stream().map(one -> one.refused(sharedName(one, sorted))).toList();
    }

    private static <P> String sharedName(DiscoveredProvider<P> one, List<DiscoveredProvider<P>> claimants) {
        return claimants.stream()
                .map(DiscoveredProvider::who)
                .filter(who -> !who.equals(one.who()))
                .collect(Collectors.joining(" and ", "shares its name with ", "; remove all but one"));
    }
}
