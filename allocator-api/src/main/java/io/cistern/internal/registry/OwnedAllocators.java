package io.cistern.internal.registry;

import io.cistern.cuda.CisternException;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.SettingProblems;
import io.cistern.internal.options.SpecProblems;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The allocators that the framework opened because a spec was to be current: the program's, or that of the
/// configuration. They belong to the framework, which closes those that are current nowhere any more. Devices
/// with the same spec share an allocator.
///
/// **Reload.** It looks for providers and configuration again. For each device whose allocator the
/// configuration named, it opens the new choice. If neither the choice of a device nor any plug-in changed,
/// nothing is exchanged.
///
/// **Invariant**, while nobody holds the lock of [CurrentAllocators]: each allocator in here that is open is
/// current on some device, or about to close.
///
/// **Threads.** One at a time: the callers hold that lock.
final class OwnedAllocators {
    private final Registry registry;
    private final List<OpenAllocator> bySpec = new ArrayList<>();

    /// Those whose plug-ins a reload found changed, so that their spec means another allocator now.
    private final List<OpenAllocator> outdated = new ArrayList<>();

    /// Those that are current nowhere and about to close, which must not become current again.
    private final List<OpenAllocator> retired = new ArrayList<>();

    OwnedAllocators(Registry registry) {
        this.registry = registry;
    }

    boolean contains(OpenAllocator allocator) {
        return bySpec.contains(allocator) || outdated.contains(allocator);
    }

    /// Returns whether an allocator is about to close.
    boolean isRetired(OpenAllocator allocator) {
        return retired.contains(allocator);
    }

    /// Returns the open allocator of a spec, and opens it if necessary.
    ///
    /// @throws ConfigurationException if the spec can't be followed
    /// @throws IllegalStateException if the device memory is closed
    OpenAllocator get(AllocatorSpec spec) {
        OpenAllocator present = find(spec);
        if (present != null) {
            return present;
        }
        OpenAllocator opened = registry.open(spec, null);
        present = find(spec);
        if (present != null) { // the plug-in has made its own spec current meanwhile
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

    /// Returns the allocator that the configuration names for a device.
    OpenAllocator configured(int device) {
        return open(choice(registry.catalog(), device));
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
            return get(choice.spec());
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

    /// Opens the allocators that are named now.
    ///
    /// @param former the allocators that are current by the former configuration, by device
    /// @return the allocators that replace them, by device, without those that stay
    /// @throws ConfigurationException if one of them can't be opened; the configuration stays as it was then
    SortedMap<Integer, OpenAllocator> reload(SortedMap<Integer, OpenAllocator> former) {
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
            SortedMap<Integer, OpenAllocator> changed = new TreeMap<>();
            former.forEach((device, allocator) -> {
                Catalog.Choice choice = choice(next, device);
                if (!samePlugins
                        || !choice.spec().text().equals(allocator.spec().text())) {
                    changed.put(device, open(choice));
                }
            });
            return changed;
        } catch (Throwable failure) {
            registry.use(before);
            outdated.removeAll(present);
            outdated.addAll(bySpec);
            bySpec.clear();
            bySpec.addAll(present);
            throw failure;
        }
    }

    /// Retires the allocators that are current nowhere, for the caller to close without the lock.
    List<OpenAllocator> retireUnused(Predicate<OpenAllocator> isCurrent) {
        List<OpenAllocator> unused = new ArrayList<>(bySpec);
        unused.addAll(outdated);
        unused.removeIf(isCurrent);
        retired.addAll(unused);
        bySpec.removeAll(unused);
        outdated.removeAll(unused);
        return unused;
    }

    /// Forgets retired allocators. The next exchange closes those that could not close.
    void forget(List<OpenAllocator> unused) {
        for (OpenAllocator each : unused) {
            if (!each.isClosed()) {
                outdated.add(each);
            }
        }
        retired.removeAll(unused);
    }
}
