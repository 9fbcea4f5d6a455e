package io.cistern.micrometer;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/// Meters that are removed together. All have the group's tags, and some have more.
///
/// **Threads.** Any. Finding a meter that exists takes no lock.
final class MeterGroup {
    private record Key(String name, Tags more) {}

    private final MeterRegistry registry;
    private final Tags tags;
    private final Map<Key, Meter> meters = new ConcurrentHashMap<>();

    /// Guarded by this.
    private boolean removed;

    MeterGroup(MeterRegistry registry, Tags tags) {
        this.registry = registry;
        this.tags = tags;
    }

    /// Returns an empty group with more tags in the same registry.
    MeterGroup with(Tags more) {
        return new MeterGroup(registry, tags.and(more));
    }

    /// Returns the meter of a name and tags; the first call registers it.
    ///
    /// @param registering receives all tags and the registry
    /// @return null if the group was removed
    <M extends Meter> @Nullable M meter(
            Class<M> type, String name, Tags more, BiFunction<Tags, MeterRegistry, M> registering) {
        Key key = new Key(name, more);
        Meter known = meters.get(key);
        return type.cast(known != null ? known : registered(key, registering));
    }

    private synchronized @Nullable Meter registered(
            Key key, BiFunction<Tags, MeterRegistry, ? extends Meter> registering) {
        return removed ? null : meters.computeIfAbsent(key, _ -> registering.apply(tags.and(key.more()), registry));
    }

    synchronized void remove() {
        removed = true;
        meters.values().forEach(registry::remove);
        meters.clear();
    }
}
