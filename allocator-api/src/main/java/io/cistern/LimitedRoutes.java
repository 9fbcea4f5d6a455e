package io.cistern;

import io.cistern.internal.routing.Budgets;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// The ways to one allocator for scopes with a limit: a set of routes, by device, for each limit in use.
///
/// Owner records name routes, and there are not many. So the routes of a limit that nothing refers to any more serve
/// the next new limit, as soon as their last block is gone: programs may make a limit for each request. Whoever holds
/// such routes (a scope, a carrier) holds their limit too.
///
/// **Threads.** Any.
final class LimitedRoutes {
    private final Router router;
    private final Route[] unlimited;
    private final IntFunction<@Nullable Budgets> budgets;
    private final Runnable whenDrained;
    private final Map<MemoryLimit, Route[]> inUse = new WeakHashMap<>();
    private final List<Route[]> all = new ArrayList<>();

    /// @param unlimited the allocator's own routes by device
    /// @param budgets what the allocator's blocks are charged to in any case, by device
    /// @param whenDrained runs for each route that closed and has no block left
    LimitedRoutes(Router router, Route[] unlimited, IntFunction<@Nullable Budgets> budgets, Runnable whenDrained) {
        this.router = router;
        this.unlimited = unlimited;
        this.budgets = budgets;
        this.whenDrained = whenDrained;
    }

    /// The routes for a limit.
    ///
    /// @param whenOpening runs before each route that has to be opened
    synchronized Route[] of(MemoryLimit limit, Runnable whenOpening) {
        Route[] routes = inUse.get(limit);
        if (routes == null) {
            routes = recharged(limit);
            if (routes == null) {
                routes = opened(limit, whenOpening);
                all.add(routes);
            }
            inUse.put(limit, routes);
        }
        return routes;
    }

    /// All of them.
    synchronized List<Route> all() {
        return all.stream().flatMap(Arrays::stream).toList();
    }

    private Route @Nullable [] recharged(MemoryLimit limit) {
        if (inUse.size() == all.size()) {
            return null;
        }
        for (Route[] routes : all) {
            if (!inUse.containsValue(routes) && recharge(routes, limit)) {
                return routes;
            }
        }
        return null;
    }

    private boolean recharge(Route[] routes, MemoryLimit limit) {
        for (int device = 0; device < routes.length; device++) {
            Budgets charged = charged(device, limit);
            if (charged == null || !router.recharge(routes[device], charged)) {
                return false;
            }
        }
        return true;
    }

    private Route[] opened(MemoryLimit limit, Runnable whenOpening) {
        Route[] routes = new Route[unlimited.length];
        for (int device = 0; device < routes.length; device++) {
            whenOpening.run();
            routes[device] = router.openBeside(unlimited[device], charged(device, limit), whenDrained);
        }
        return routes;
    }

    private @Nullable Budgets charged(int device, MemoryLimit limit) {
        return Budgets.of(budgets.apply(device), limit.budget());
    }
}
