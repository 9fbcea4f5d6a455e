package io.cistern.internal.registry;

import io.cistern.cuda.CisternException;
import io.cistern.cuda.settings.Settings;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.events.Events;
import io.cistern.internal.names.Devices;
import io.cistern.internal.names.Failures;
import io.cistern.internal.names.SettingProblems;
import io.cistern.internal.options.SpecProblems;
import io.cistern.internal.routing.Route;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Holds the allocator that is current on each device, outside scopes.
///
/// **A change** writes one route for each device with a release store. An allocation that read the former
/// route either begins before its allocator closes, and the close waits for it, or is refused and reads
/// again.
///
/// **Owned allocators.** The framework opens an allocator to make the spec of the program or of the
/// configuration current. It closes the allocator once it is current on no device. Devices with the same
/// spec share one.
///
/// **Reload.** It looks for providers and configuration again. For each device whose allocator the
/// configuration named, it opens the new choice. If neither the choice of a device nor any plug-in changed,
/// nothing is exchanged.
///
/// **Invariant**, while nobody holds the monitor: each owned allocator that is open is current on some device, or
/// about to close.
///
/// **Threads.** Any; changes are made one at a time, under the monitor.
public final class CurrentAllocators {
    private static final VarHandle ROUTE = MethodHandles.arrayElementVarHandle(Route[].class);

    /// The replacement of an allocator, or of none.
    private record Exchange(int device, @Nullable OpenAllocator former, OpenAllocator now) {
        @Override
        public String toString() {
            return "device " + device + ": " + former + " -> " + now;
        }
    }

    private final Registry registry;

    /// By device. Null before the first choice. A change writes it under its own lock, since readers must not wait
    /// for a plug-in that the change opens.
    private final @Nullable OpenAllocator[] chosen;

    /// By device. Null before the first choice, and always if routes are not published.
    private final @Nullable Route[] routes;

    private final boolean publishes;

    /// By device, whether the configuration chose and not the program.
    private final boolean[] byConfiguration;

    /// The owned allocators.
    private final List<OpenAllocator> bySpec = new ArrayList<>();

    /// Owned allocators whose plug-ins a reload found changed, so that their spec means another allocator now.
    private final List<OpenAllocator> outdated = new ArrayList<>();

    /// Owned allocators that are current nowhere and about to close, so must not become current again.
    private final List<OpenAllocator> retired = new ArrayList<>();

    /// Makes an event from the former allocator.
    private final Events.Factory<String> changed = (former, device, _, _, _, _) -> changed(former, device);

    /// @param routes the array that [#route] reads, by device; all null
    /// @param publishes whether routes are written; if not, each allocation outside scopes asks here
    CurrentAllocators(Registry registry, @Nullable Route[] routes, boolean publishes) {
        this.registry = registry;
        this.chosen = new OpenAllocator[routes.length];
        this.byConfiguration = new boolean[routes.length];
        this.routes = routes;
        this.publishes = publishes;
    }

    /// Returns the route of the current allocator on a device, in one read; null if there is none yet, or
    /// routes are not published.
    ///
    /// @param routes the array given to the constructor. The caller holds it too, which saves a read of this
    ///     object
    /// @throws IndexOutOfBoundsException if there is no such device
    public static @Nullable Route route(@Nullable Route[] routes, int device) {
        try {
            return (Route) ROUTE.getAcquire(routes, device);
        } catch (IndexOutOfBoundsException e) {
            throw Devices.none(device, routes.length);
        }
    }

    /// Returns the current allocator on a device. If there is none, the one that the configuration names
    /// becomes current.
    public OpenAllocator get(int device) {
        OpenAllocator present = present(device);
        return present != null ? present : first(device);
    }

    private synchronized OpenAllocator first(int device) {
        OpenAllocator present = present(device);
        return present != null
                ? present
                : put(device, open(choice(registry.catalog(), device)), true).now();
    }

    private @Nullable OpenAllocator present(int device) {
        synchronized (chosen) {
            return chosen[Devices.check(device, chosen.length)];
        }
    }

    /// Returns whether an allocator is current on a device.
    public boolean isCurrent(int device, OpenAllocator allocator) {
        return present(device) == allocator;
    }

    /// Publishes the route of an allocator again, if it is current on a device.
    void renew(int device, OpenAllocator allocator) {
        synchronized (chosen) {
            if (publishes && chosen[device] == allocator) {
                ROUTE.setRelease(routes, device, allocator.route(device));
            }
        }
    }

    /// Makes the allocator of a spec current on all devices, and opens it if necessary.
    ///
    /// @throws ConfigurationException if the spec can't be followed; nothing changes then
    /// @throws IllegalStateException if the device memory is closed, or as for [#exchange]
    /// @throws RuntimeException as for [#exchange]
    public OpenAllocator set(AllocatorSpec spec) {
        registry.requireOpen();
        return exchange(false, () -> onAllDevices(owned(spec))).getFirst().now();
    }

    /// Makes an allocator that the program opened current on all devices.
    public void set(OpenAllocator next) {
        exchange(false, () -> onAllDevices(requireStaying(next)));
    }

    /// Makes an allocator that the program opened current on a device.
    public void set(int device, OpenAllocator next) {
        exchange(false, () -> Map.of(Devices.check(device, chosen.length), requireStaying(next)));
    }

    /// Makes an allocator current on a device if the expected one still is.
    ///
    /// @return whether it was current
    public boolean compareAndSet(int device, OpenAllocator expected, OpenAllocator next) {
        return !exchange(false, () -> {
                    requireStaying(next);
                    return get(device).equals(expected) ? Map.of(device, next) : Map.of();
                })
                .isEmpty();
    }

    private OpenAllocator requireStaying(OpenAllocator next) {
        if (retired.contains(next)) {
            throw Registry.closedOrForeign(next);
        }
        return registry.requireMember(next);
    }

    private Map<Integer, OpenAllocator> onAllDevices(OpenAllocator allocator) {
        Map<Integer, OpenAllocator> all = new TreeMap<>();
        for (int device = 0; device < chosen.length; device++) {
            all.put(device, allocator);
        }
        return all;
    }

    /// Looks for plug-ins and configuration again, and exchanges the allocators that the configuration had
    /// chosen.
    ///
    /// @return a readable line for each exchange
    /// @throws ConfigurationException if one of them can't be opened; nothing changes then
    public List<String> reload() {
        return exchange(true, this::reloaded).stream().map(Exchange::toString).toList();
    }

    /// Exchanges current allocators, closes owned ones that are current nowhere afterwards, and delivers the events.
    ///
    /// @param byConfigurationNow whether the configuration names the new ones, and not the program
    /// @param change returns the new ones, by device
    /// @throws IllegalStateException as for [OpenAllocator#requireOutside], if it would close; nothing
    ///     changes then
    /// @throws RuntimeException if former allocators fail to close: the first failure, with the others
    ///     suppressed in it. All of them are closed then, and the new ones are current
    private List<Exchange> exchange(boolean byConfigurationNow, Supplier<Map<Integer, OpenAllocator>> change) {
        try {
            return exchangeQuietly(byConfigurationNow, change);
        } finally {
            registry.observers().deliver();
        }
    }

    private List<Exchange> exchangeQuietly(boolean byConfigurationNow, Supplier<Map<Integer, OpenAllocator>> change) {
        List<Exchange> done = new ArrayList<>();
        Failures failures = new Failures();
        List<OpenAllocator> unused;
        synchronized (this) {
            failures.gather(() -> {
                Map<Integer, OpenAllocator> next = change.get();
                closedBy(next).forEach(OpenAllocator::requireOutside);
                next.forEach((device, allocator) -> done.add(put(device, allocator, byConfigurationNow)));
            });
            unused = ownedBut(currentAfter(Map.of()));
            retired.addAll(unused);
            bySpec.removeAll(unused);
            outdated.removeAll(unused);
        }
        unused.forEach(allocator -> failures.gather(allocator::closeReplaced));
        synchronized (this) {
            unused.stream().filter(each -> !each.isClosed()).forEach(outdated::add); // the next exchange closes them
            retired.removeAll(unused);
        }
        failures.rethrow();
        return done;
    }

    /// Returns the current allocators that an exchange would close.
    private List<OpenAllocator> closedBy(Map<Integer, OpenAllocator> next) {
        List<OpenAllocator> closed = ownedBut(currentAfter(next));
        closed.retainAll(currentAfter(Map.of()));
        return closed;
    }

    /// Returns the owned allocators except the given ones.
    private List<OpenAllocator> ownedBut(Set<OpenAllocator> others) {
        List<OpenAllocator> all = new ArrayList<>(bySpec);
        all.addAll(outdated);
        all.removeAll(others);
        return all;
    }

    /// Returns the allocators that are current on some device after an exchange.
    private Set<OpenAllocator> currentAfter(Map<Integer, OpenAllocator> next) {
        Set<OpenAllocator> current = new HashSet<>(next.values());
        for (int device = 0; device < chosen.length; device++) {
            OpenAllocator present = chosen[device];
            if (present != null && !next.containsKey(device)) {
                current.add(present);
            }
        }
        return current;
    }

    private Exchange put(int device, OpenAllocator next, boolean chosenByConfiguration) {
        OpenAllocator former;
        synchronized (chosen) {
            former = chosen[device];
            chosen[device] = next;
            if (publishes) {
                ROUTE.setRelease(routes, device, next.route(device));
            }
        }
        byConfiguration[device] = chosenByConfiguration;
        if (former != next) {
            registry.observers().post(changed, former == null ? "" : former.toString(), device, 0, 0, 0);
        }
        return new Exchange(device, former, next);
    }

    private MemoryEvent changed(String former, int device) {
        return new MemoryEvent.CurrentChanged(device, former, String.valueOf(present(device)));
    }

    /// Returns the owned allocator of a spec, and opens it if necessary.
    private OpenAllocator owned(AllocatorSpec spec) {
        OpenAllocator present = find(spec);
        if (present != null) {
            return present;
        }
        OpenAllocator opened = registry.open(spec, null);
        present = find(spec);
        if (present != null) { // the plug-in itself has made its spec current
            opened.close();
            return present;
        }
        bySpec.add(opened);
        return opened;
    }

    private @Nullable OpenAllocator find(AllocatorSpec spec) {
        for (OpenAllocator present : bySpec) {
            if (!present.isClosed() && present.spec().text().equals(spec.text())) {
                return present;
            }
        }
        return null;
    }

    private Catalog.Choice choice(Catalog catalog, int device) {
        return catalog.choose(registry.environment(), device);
    }

    /// @throws ConfigurationException if the spec can't be followed, or its plug-in throws an exception of its
    ///     own. The message names the source of the setting, if one named the allocator
    /// @throws IllegalStateException if the device memory is closed
    private OpenAllocator open(Catalog.Choice choice) {
        registry.requireOpen();
        try {
            return owned(choice.spec());
        } catch (ConfigurationException e) {
            throw choice.isByPriority() ? e : withAllProblems(choice.reason() + ": " + e.getMessage(), e);
        } catch (CisternException known) {
            throw known;
        } catch (RuntimeException e) {
            throw new ConfigurationException(choice.reason() + ": " + choice.spec() + " can't be opened: " + e, e);
        }
    }

    private ConfigurationException withAllProblems(String first, ConfigurationException cause) {
        ConfigurationException failure = new ConfigurationException(first, cause);
        String all =
                SettingProblems.all(Settings.ofProcess(), failure, spec -> SpecProblems.of(spec, registry.catalog()));
        return all.equals(first) ? failure : new ConfigurationException(all, cause);
    }

    /// Looks for providers and configuration again, and opens the allocators that are named now. If one of them can't
    /// be opened, the configuration stays as it was.
    ///
    /// @return the allocators that replace those of the former configuration, by device
    private Map<Integer, OpenAllocator> reloaded() {
        Catalog before = registry.catalog();
        Catalog next = before.refreshed();
        boolean samePlugins = next.entries().equals(before.entries());
        List<OpenAllocator> present = List.copyOf(bySpec);
        registry.use(next);
        if (!samePlugins) {
            bySpec.clear();
            outdated.addAll(present);
        }
        try {
            Map<Integer, OpenAllocator> replacing = new TreeMap<>();
            for (int device = 0; device < chosen.length; device++) {
                OpenAllocator former = byConfiguration[device] ? chosen[device] : null;
                if (former != null) {
                    Catalog.Choice choice = choice(next, device);
                    if (!samePlugins
                            || !choice.spec().text().equals(former.spec().text())) {
                        replacing.put(device, open(choice));
                    }
                }
            }
            return replacing;
        } catch (Throwable failure) {
            registry.use(before);
            outdated.removeAll(present);
            outdated.addAll(bySpec);
            bySpec.clear();
            bySpec.addAll(present);
            throw failure;
        }
    }
}
