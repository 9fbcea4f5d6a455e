package io.cistern.internal.registry;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.events.Events;
import io.cistern.internal.events.Observers;
import io.cistern.internal.names.Devices;
import io.cistern.internal.routing.Route;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// Holds the allocator that is current on each device, outside scopes.
///
/// A change writes one route for each device with a release store. An allocation that read the former route
/// either gets in before its allocator closes, which then waits for it, or is refused and reads again.
///
/// **Threads.** Any; changes are made one at a time.
public final class CurrentAllocators {
    private static final VarHandle ROUTE = MethodHandles.arrayElementVarHandle(Route[].class);

    /// By device. Null before the first choice. A change writes it under its own lock, since readers must not wait
    /// for a plug-in that the change opens.
    private final @Nullable OpenAllocator[] chosen;

    /// By device. Null before the first choice, and always if routes are not published.
    private final @Nullable Route[] routes;

    /// By device, whether the configuration chose and not the program.
    private final boolean[] byConfiguration;

    /// An allocator instead of another one, or of none.
    public record Exchange(int device, @Nullable OpenAllocator former, OpenAllocator now) {
        @Override
        public String toString() {
            return "device " + device + ": " + former + " -> " + now;
        }
    }

    private final boolean publishes;
    private final IntFunction<OpenAllocator> configured;
    private final Observers observers;

    /// Makes an event from the former allocator.
    private final Events.Factory<String> changed = (former, device, _, _, _, _) -> changed(former, device);

    /// @param routes the array that [#route] reads, by device; all null
    /// @param publishes whether routes are written; if not, each allocation outside scopes asks here
    /// @param configured returns the open allocator that is current on a device if the program chose none
    CurrentAllocators(
            @Nullable Route[] routes, boolean publishes, IntFunction<OpenAllocator> configured, Observers observers) {
        this.chosen = new OpenAllocator[routes.length];
        this.byConfiguration = new boolean[routes.length];
        this.routes = routes;
        this.publishes = publishes;
        this.configured = configured;
        this.observers = observers;
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

    /// Returns the current allocator on a device, and opens it if necessary.
    public OpenAllocator get(int device) {
        OpenAllocator present = present(device);
        return present != null ? present : first(device);
    }

    private synchronized OpenAllocator first(int device) {
        OpenAllocator present = present(device);
        return present != null
                ? present
                : set(device, configured.apply(device), true).now();
    }

    private @Nullable OpenAllocator present(int device) {
        synchronized (chosen) {
            return chosen[Devices.check(device, chosen.length)];
        }
    }

    /// Returns, by device, the allocators that are current by the configuration: none for a device for which
    /// the program chose, or for which nobody has asked yet.
    public synchronized SortedMap<Integer, OpenAllocator> configured() {
        SortedMap<Integer, OpenAllocator> found = new TreeMap<>();
        for (int device = 0; device < chosen.length; device++) {
            OpenAllocator present = chosen[device];
            if (byConfiguration[device] && present != null) {
                found.put(device, present);
            }
        }
        return found;
    }

    /// Returns whether an allocator is current anywhere.
    synchronized boolean isCurrent(OpenAllocator allocator) {
        return Arrays.asList(chosen).contains(allocator);
    }

    /// Returns whether an allocator is current on a device.
    public boolean isCurrent(int device, OpenAllocator allocator) {
        return present(device) == allocator;
    }

    /// Returns the allocators that would be current nowhere after an exchange.
    ///
    /// @param next the allocators to become current, by device
    synchronized Set<OpenAllocator> replacedBy(Map<Integer, OpenAllocator> next) {
        Set<OpenAllocator> stay = new HashSet<>(next.values());
        Set<OpenAllocator> replaced = new LinkedHashSet<>();
        for (int device = 0; device < chosen.length; device++) {
            OpenAllocator present = chosen[device];
            if (present != null) {
                (next.containsKey(device) ? replaced : stay).add(present);
            }
        }
        replaced.removeAll(stay);
        return replaced;
    }

    /// Publishes the route of an allocator again, if it is current on a device.
    void renew(int device, OpenAllocator allocator) {
        synchronized (chosen) {
            if (publishes && chosen[device] == allocator) {
                ROUTE.setRelease(routes, device, allocator.route(device));
            }
        }
    }

    /// Makes an allocator current on a device.
    ///
    /// @param chosenByConfiguration whether the configuration names it, and not the program
    synchronized Exchange set(int device, OpenAllocator next, boolean chosenByConfiguration) {
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
            observers.post(changed, former == null ? "" : former.toString(), device, 0, 0, 0);
        }
        return new Exchange(device, former, next);
    }

    private MemoryEvent changed(String former, int device) {
        return new MemoryEvent.CurrentChanged(device, former, String.valueOf(present(device)));
    }
}
