package io.cistern.internal.registry;

import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.Budgets;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Routes;
import io.cistern.spi.DeviceAllocator;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The routes to one allocator for scopes with a limit: a set of routes, by device, for each limit in use.
///
/// Owner records have room for the numbers of few routes, while programs may make a limit for each request.
/// So the routes of a limit that is used by no scope, or is unreachable, serve the next new limit once
/// their last block is freed. The limit receives other routes when it is used again. A scope or a carrier
/// that holds such routes holds their limit too.
///
/// **Threads.** Any.
final class LimitedRoutes {
    /// The most retired routes to check for one new limit. If most have live blocks, new routes are opened.
    private static final int MAX_TRIES = 8;

    /// The number of unused limits that keep their routes, since they are likely to be used again.
    private static final int MAX_IDLE = 64;

    private final Routes routing;
    private final DeviceAllocator allocator;
    private final Route[] unlimited;
    private final IntFunction<@Nullable Budgets> budgets;
    private final Runnable whenOpening;
    private final Runnable whenDrained;
    private final Map<LimitHandle, Use> inUse = new WeakHashMap<>();
    private final ReferenceQueue<LimitHandle> forgotten = new ReferenceQueue<>();

    /// Routes whose limit is gone; some of them may still have live blocks. Those checked longest ago come
    /// first.
    private final Deque<Route[]> retired = new ArrayDeque<>();

    private final ArrayList<Route> all = new ArrayList<>();

    /// Limits that no scope used when they were added here, the longest idle first.
    private final Deque<Use> idle = new ArrayDeque<>();

    /// The routes of one limit. Cleared once the limit is unreachable. Guarded by the routes to the
    /// allocator.
    final class Use extends WeakReference<LimitHandle> {
        final Route[] routes;
        private int scopes;

        /// Whether code outside scopes may use the routes while the limit is reachable.
        private boolean kept;

        private boolean isQueued;
        private boolean isOver;

        Use(LimitHandle limit, Route[] routes, ReferenceQueue<LimitHandle> forgotten) {
            super(limit, forgotten);
            this.routes = routes;
        }

        void keep() {
            synchronized (LimitedRoutes.this) {
                kept = true;
            }
        }

        void beginScope() {
            synchronized (LimitedRoutes.this) {
                scopes++;
            }
        }

        void endScope() {
            synchronized (LimitedRoutes.this) {
                scopes--;
                if (isIdle() && !isQueued) {
                    isQueued = true;
                    idle.addLast(this);
                }
            }
        }

        private boolean isIdle() {
            return scopes == 0 && !kept && !isOver;
        }
    }

    /// @param allocator the allocator
    /// @param unlimited the allocator's own routes by device
    /// @param budgets the budgets to which all blocks of the allocator are charged, by device
    /// @param whenOpening runs before each route that has to be opened; if that fails, `whenDrained` runs
    /// @param whenDrained runs for each route that has closed and has no block left
    LimitedRoutes(
            Routes routing,
            DeviceAllocator allocator,
            Route[] unlimited,
            IntFunction<@Nullable Budgets> budgets,
            Runnable whenOpening,
            Runnable whenDrained) {
        this.routing = routing;
        this.allocator = allocator;
        this.unlimited = unlimited;
        this.budgets = budgets;
        this.whenOpening = whenOpening;
        this.whenDrained = whenDrained;
    }

    /// Returns the routes for a limit.
    ///
    /// @throws IllegalStateException if there are too many routes
    synchronized Use of(LimitHandle limit) {
        Use use = inUse.get(limit);
        if (use == null) {
            collectForgotten();
            Route[] routes = idle.size() > MAX_IDLE ? rechargedIdle(limit) : null;
            routes = routes != null ? routes : recharged(limit);
            use = new Use(limit, routes != null ? routes : opened(limit), forgotten);
            inUse.put(limit, use);
        }
        return use;
    }

    /// Returns the limit that a route serves; null if the route is not one of these.
    synchronized @Nullable LimitHandle limitOf(Route route) {
        return inUse.entrySet().stream()
                .filter(each -> each.getValue().routes[route.device()] == route)
                .map(Map.Entry::getKey)
                .findFirst()
                .orElse(null);
    }

    synchronized List<Route> all() {
        return List.copyOf(all);
    }

    /// Replaces the routes of a device by ones that are charged to a further budget, which counts all blocks that are
    /// alive.
    ///
    /// @param replaced receives the former routes, for the caller to close, even after a failure; it has
    ///     room for them
    synchronized void charge(int device, Budget added, @Nullable Route[] replaced) {
        routing.count(unlimited[device], added);
        int at = 0;
        for (Map.Entry<LimitHandle, Use> each : inUse.entrySet()) {
            Route[] routes = each.getValue().routes;
            Budgets charged = charged(device, each.getKey());
            if (charged != null && !Routes.isCharged(routes[device], added)) {
                Route former = routes[device];
                routes[device] = successor(former, charged);
                replaced[at++] = former;
            }
        }
    }

    /// Returns how many limits have routes now.
    synchronized int count() {
        return inUse.size();
    }

    /// Opens the successor of a route to the allocator, which is charged to further budgets.
    synchronized Route successor(Route former, Budgets charged) {
        Route next = counted(() -> routing.openSuccessor(former, allocator, charged, whenDrained));
        for (int i = 0; i < all.size(); i++) { // without Java heap
            if (all.get(i) == former) {
                all.set(i, next);
            }
        }
        return next;
    }

    private Route counted(Supplier<Route> opening) {
        whenOpening.run();
        try {
            return opening.get();
        } catch (Throwable failure) {
            whenDrained.run();
            throw failure;
        }
    }

    private void collectForgotten() {
        while (forgotten.poll() instanceof Use gone) {
            if (!gone.isOver) {
                gone.isOver = true;
                retired.addLast(gone.routes);
            }
        }
    }

    private Route @Nullable [] rechargedIdle(LimitHandle limit) {
        for (int tries = MAX_TRIES; tries > 0 && !idle.isEmpty(); tries--) {
            Use use = idle.removeFirst();
            use.isQueued = false;
            if (use.isIdle() && recharge(use.routes, limit)) {
                use.isOver = true;
                LimitHandle former = use.get();
                if (former != null) {
                    inUse.remove(former);
                }
                return use.routes;
            }
            if (use.isIdle()) {
                use.isQueued = true;
                idle.addLast(use);
            }
        }
        return null;
    }

    private Route @Nullable [] recharged(LimitHandle limit) {
        for (int tries = Math.min(retired.size(), MAX_TRIES); tries > 0; tries--) {
            Route[] routes = retired.removeFirst();
            if (recharge(routes, limit)) {
                return routes;
            }
            retired.addLast(routes);
        }
        return null;
    }

    private boolean recharge(Route[] routes, LimitHandle limit) {
        for (int device = 0; device < routes.length; device++) {
            Budgets charged = charged(device, limit);
            if (charged == null || !routing.recharge(routes[device], charged)) {
                return false;
            }
        }
        return true;
    }

    private Route[] opened(LimitHandle limit) {
        Route[] routes = new Route[unlimited.length];
        all.ensureCapacity(all.size() + routes.length);
        try {
            for (int device = 0; device < routes.length; device++) {
                Route sibling = unlimited[device];
                Budgets charged = charged(device, limit);
                routes[device] = counted(() -> routing.openSibling(sibling, allocator, charged, whenDrained));
                all.add(routes[device]);
            }
        } catch (Throwable failure) {
            for (Route route : routes) { // they are of no use without the others
                if (route != null) {
                    all.remove(route);
                    routing.close(route);
                }
            }
            throw failure;
        }
        return routes;
    }

    private @Nullable Budgets charged(int device, LimitHandle limit) {
        return Budgets.of(budgets.apply(device), limit.budget());
    }
}
