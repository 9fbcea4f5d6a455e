package io.cistern;

import io.cistern.errors.ConfigurationException;
import io.cistern.cuda.CisternException;
import io.cistern.spi.Catalog;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/// The allocators that the configuration names, opened when a device first needs one, and exchanged when somebody
/// asks for that. Devices with the same spec share an allocator.
///
/// **Reload.** Providers and configuration are looked for again; for each device that has what the configuration
/// named, the new choice is opened; and only when all are open, they become current in an ordinary swap. Nothing
/// is exchanged where neither the choice nor any plug-in changed.
///
/// **Threads.** One at a time: the callers hold a lock.
final class ConfiguredAllocators {
    private final OpenAllocators memory;
    private final Map<String, Allocator> bySpec = new LinkedHashMap<>();

    ConfiguredAllocators(OpenAllocators memory) {
        this.memory = memory;
    }

    /// The one that the configuration names for a device.
    Allocator get(int device) {
        Catalog.Choice choice = choice(memory.catalog(), device);
        bySpec.values().removeIf(Allocator::isClosed);
        return bySpec.computeIfAbsent(choice.spec().text(), _ -> open(choice));
    }

    private Catalog.Choice choice(Catalog catalog, int device) {
        return catalog.choose(memory.environment(), device);
    }

    /// @throws ConfigurationException if the spec can't be followed, or its plug-in throws something of its own, with
    ///     who set it
    /// @throws IllegalStateException if the device memory is closed
    private Allocator open(Catalog.Choice choice) {
        memory.requireOpen();
        try {
            return memory.open(choice.spec());
        } catch (ConfigurationException e) {
            throw new ConfigurationException(choice.reason() + ": " + e.getMessage(), e);
        } catch (CisternException known) {
            throw known;
        } catch (RuntimeException e) {
            throw new ConfigurationException(choice.reason() + ": " + choice.spec() + " can't be opened: " + e, e);
        }
    }

    /// Opens what is named now.
    ///
    /// @param former what is current by the former configuration, by device
    /// @return what shall be current instead, by device; those that stay are not in it
    /// @throws ConfigurationException if any can't be opened: then none is
    SortedMap<Integer, Allocator> reload(SortedMap<Integer, Allocator> former) {
        Catalog before = memory.catalog();
        Catalog next = before.refreshed();
        boolean samePlugins = next.entries().equals(before.entries());
        Map<String, Allocator> opened = new LinkedHashMap<>();
        SortedMap<Integer, Allocator> changed = new TreeMap<>();
        memory.use(next);
        try {
            former.forEach((device, allocator) -> {
                Catalog.Choice choice = choice(next, device);
                String spec = choice.spec().text();
                if (!samePlugins || !spec.equals(allocator.spec().text())) {
                    changed.put(device, opened.computeIfAbsent(spec, _ -> open(choice)));
                }
            });
        } catch (Throwable failure) {
            memory.use(before);
            opened.values().forEach(Allocator::close);
            throw failure;
        }
        bySpec.putAll(opened);
        return changed;
    }

    /// What a reload changed, for people.
    static List<String> told(SortedMap<Integer, Allocator> former, SortedMap<Integer, Allocator> changed) {
        List<String> lines = new ArrayList<>();
        changed.forEach((device, now) -> lines.add("device " + device + ": " + former.get(device) + " -> " + now));
        return lines;
    }
}
