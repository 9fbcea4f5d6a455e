package io.cistern.internal.registry;

import io.cistern.cuda.CisternException;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/// Opens the allocators that the configuration names, when a device first needs one, and exchanges them on
/// request. Devices with the same spec share an allocator.
///
/// **Reload.** It looks for providers and configuration again. For each device whose allocator the
/// configuration named, it opens the new choice. Once all are open, they become current in an ordinary swap. If
/// neither the choice of a device nor any plug-in changed, nothing is exchanged.
///
/// **Threads.** One at a time: the callers hold a lock.
final class ConfiguredAllocators {
    private final Registry registry;
    private final Map<String, OpenAllocator> bySpec = new LinkedHashMap<>();

    ConfiguredAllocators(Registry registry) {
        this.registry = registry;
    }

    /// Returns the allocator that the configuration names for a device.
    OpenAllocator get(int device) {
        Catalog.Choice choice = choice(registry.catalog(), device);
        bySpec.values().removeIf(OpenAllocator::isClosed);
        return bySpec.computeIfAbsent(choice.spec().text(), _ -> open(choice));
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
            return registry.open(choice.spec(), null);
        } catch (ConfigurationException e) {
            throw choice.isByPriority() ? e : new ConfigurationException(choice.reason() + ": " + e.getMessage(), e);
        } catch (CisternException known) {
            throw known;
        } catch (RuntimeException e) {
            throw new ConfigurationException(choice.reason() + ": " + choice.spec() + " can't be opened: " + e, e);
        }
    }

    /// Opens the allocators that are named now.
    ///
    /// @param former the allocators that are current by the former configuration, by device
    /// @return the allocators that replace them, by device, without those that stay
    /// @throws ConfigurationException if one of them can't be opened; then none stays open
    SortedMap<Integer, OpenAllocator> reload(SortedMap<Integer, OpenAllocator> former) {
        Catalog before = registry.catalog();
        Catalog next = before.refreshed();
        boolean samePlugins = next.entries().equals(before.entries());
        Map<String, OpenAllocator> opened = new LinkedHashMap<>();
        SortedMap<Integer, OpenAllocator> changed = new TreeMap<>();
        registry.use(next);
        try {
            former.forEach((device, allocator) -> {
                Catalog.Choice choice = choice(next, device);
                String spec = choice.spec().text();
                if (!samePlugins || !spec.equals(allocator.spec().text())) {
                    changed.put(device, opened.computeIfAbsent(spec, _ -> open(choice)));
                }
            });
        } catch (Throwable failure) {
            registry.use(before);
            opened.values().forEach(OpenAllocator::close);
            throw failure;
        }
        bySpec.putAll(opened);
        return changed;
    }

    /// Returns the changes of a reload, for people.
    static List<String> told(SortedMap<Integer, OpenAllocator> former, SortedMap<Integer, OpenAllocator> changed) {
        List<String> lines = new ArrayList<>();
        changed.forEach((device, now) -> lines.add("device " + device + ": " + former.get(device) + " -> " + now));
        return lines;
    }
}
