package io.cistern.internal.routing;

import io.cistern.internal.names.Devices;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Chooses the routes for a region of a program: a stack of choices, the innermost first, each for one device
/// or all and for one stream or all. Immutable, so that it can be carried to other threads.
///
/// While no choice in the stack is for one stream, the routes of all devices are computed when the region is
/// entered, and a look-up is one array read.
public final class ScopeStack {
    private static final long ANY_STREAM = Long.MIN_VALUE;

    private final @Nullable ScopeStack outer;

    /// The limit of the choice, if any. It must stay reachable while the routes are used.
    private final @Nullable LimitHandle limit;

    private final Runnable whenEnded;
    private final Runnable whenCarried;
    private final @Nullable Route[] own;
    private final long stream;
    private final @Nullable Route @Nullable [] flat;

    /// Puts a choice on top of an outer stack, and keeps the limit of its routes reachable.
    ///
    /// @param routes by device; null for devices to which the choice does not apply
    /// @param stream the only stream of the choice; empty for all
    /// @param whenEnded runs when the scope of the choice has ended
    /// @param whenCarried runs when code other than scopes begins to use the routes
    public ScopeStack(
            @Nullable ScopeStack outer,
            @Nullable Route[] routes,
            OptionalLong stream,
            @Nullable LimitHandle limit,
            Runnable whenEnded,
            Runnable whenCarried) {
        this.whenEnded = whenEnded;
        this.whenCarried = whenCarried;
        this.limit = limit;
        this.outer = outer;
        this.own = routes;
        this.stream = stream.orElse(ANY_STREAM);
        this.flat = flatten();
    }

    /// Puts a choice without a limit on top of an outer stack.
    public ScopeStack(@Nullable ScopeStack outer, @Nullable Route[] routes, OptionalLong stream) {
        this(outer, routes, stream, null, () -> {}, () -> {});
    }

    /// Ends the scope of the choice on top.
    public void ended() {
        whenEnded.run();
    }

    /// Keeps the routes of all choices for code that is in no scope.
    public void carried() {
        for (ScopeStack scopes = this; scopes != null; scopes = scopes.outer) {
            scopes.whenCarried.run();
        }
    }

    /// Returns the route for a device and stream, or null if the current allocator serves them.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public @Nullable Route route(int device, long forStream) {
        @Nullable Route[] routes = flat;
        try {
            return routes != null ? routes[device] : search(device, forStream);
        } catch (ArrayIndexOutOfBoundsException e) {
            throw Devices.none(device, own.length);
        }
    }

    private @Nullable Route search(int device, long forStream) {
        ScopeStack serving = serving(device, forStream);
        return serving != null ? serving.own[device] : null;
    }

    /// Returns the limit of the choice that serves a device and stream; null if there is no such choice, or it
    /// has no limit.
    public @Nullable LimitHandle limit(int device, long forStream) {
        ScopeStack serving = serving(device, forStream);
        return serving != null ? serving.limit : null;
    }

    private @Nullable ScopeStack serving(int device, long forStream) {
        for (ScopeStack scopes = this; scopes != null; scopes = scopes.outer) {
            if (scopes.own[device] != null && (scopes.stream == ANY_STREAM || scopes.stream == forStream)) {
                return scopes;
            }
        }
        return null;
    }

    private @Nullable Route @Nullable [] flatten() {
        if (stream != ANY_STREAM || (outer != null && outer.flat == null)) {
            return null;
        }
        @Nullable Route[] routes = own.clone();
        for (int device = 0; outer != null && device < routes.length; device++) {
            if (routes[device] == null) {
                routes[device] = outer.route(device, ANY_STREAM);
            }
        }
        return routes;
    }

    @Override
    public String toString() {
        return Stream.of(own)
                .filter(Objects::nonNull)
                .map(Object::toString)
                .findFirst()
                .orElse("none");
    }
}
