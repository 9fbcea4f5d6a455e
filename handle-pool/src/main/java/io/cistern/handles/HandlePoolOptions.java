package io.cistern.handles;

import java.time.Duration;

/// The options of a [HandlePool]; immutable.
///
/// ```java
/// HandlePoolOptions.DEFAULT.withMaxHandles(64).withMaxWait(Duration.ofSeconds(5))
/// ```
///
/// @param strategy what happens to the handle of a thread that ends
/// @param maxVirtualThreads the most virtual threads that have leases at once, at least 1; by default the
///     number of processors. A device needs at most this many handles, plus one for each live platform
///     thread that uses the pool
/// @param maxHandles the most handles that a device has, at least 1; [Integer#MAX_VALUE], the default, sets no
///     limit
/// @param maxWait how long a call waits before it fails, if `maxHandles` or `maxVirtualThreads` is
///     reached. The time restarts whenever another thread returns a handle or closes its lease. So
///     threads that hold handles while they wait for one another fail after this time
/// @param idleAge how long an idle handle is kept
/// @param closeWait how long [HandlePool#close] waits for open leases
public record HandlePoolOptions(
        HandleStrategy strategy,
        int maxVirtualThreads,
        int maxHandles,
        Duration maxWait,
        Duration idleAge,
        Duration closeWait) {
    /// The defaults: shared handles, and leases for as many virtual threads as there are processors.
    public static final HandlePoolOptions DEFAULT = new HandlePoolOptions(
            HandleStrategy.SHARED,
            Runtime.getRuntime().availableProcessors(),
            Integer.MAX_VALUE,
            Duration.ofSeconds(30),
            Duration.ofMinutes(1),
            Duration.ofSeconds(5));

    /// Checks the ranges, as the `with…` methods do.
    ///
    /// @throws IllegalArgumentException if `maxVirtualThreads` or `maxHandles` is below 1, or a duration is
    ///     negative
    public HandlePoolOptions {
        require(maxVirtualThreads > 0, "maxVirtualThreads", maxVirtualThreads, "must be at least 1");
        require(maxHandles > 0, "maxHandles", maxHandles, "must be at least 1");
        require(!maxWait.isNegative(), "maxWait", maxWait, "must not be negative");
        require(!idleAge.isNegative(), "idleAge", idleAge, "must not be negative");
        require(!closeWait.isNegative(), "closeWait", closeWait, "must not be negative");
    }

    private static void require(boolean holds, String what, Object value, String otherwise) {
        if (!holds) {
            throw new IllegalArgumentException(what + ": " + value + ", " + otherwise);
        }
    }

    /// Returns these options with another [#strategy].
    public HandlePoolOptions withStrategy(HandleStrategy another) {
        return new HandlePoolOptions(another, maxVirtualThreads, maxHandles, maxWait, idleAge, closeWait);
    }

    /// Returns these options with another [#maxVirtualThreads].
    public HandlePoolOptions withMaxVirtualThreads(int another) {
        return new HandlePoolOptions(strategy, another, maxHandles, maxWait, idleAge, closeWait);
    }

    /// Returns these options with another [#maxHandles].
    public HandlePoolOptions withMaxHandles(int another) {
        return new HandlePoolOptions(strategy, maxVirtualThreads, another, maxWait, idleAge, closeWait);
    }

    /// Returns these options with another [#maxWait].
    public HandlePoolOptions withMaxWait(Duration another) {
        return new HandlePoolOptions(strategy, maxVirtualThreads, maxHandles, another, idleAge, closeWait);
    }

    /// Returns these options with another [#idleAge].
    public HandlePoolOptions withIdleAge(Duration another) {
        return new HandlePoolOptions(strategy, maxVirtualThreads, maxHandles, maxWait, another, closeWait);
    }

    /// Returns these options with another [#closeWait].
    public HandlePoolOptions withCloseWait(Duration another) {
        return new HandlePoolOptions(strategy, maxVirtualThreads, maxHandles, maxWait, idleAge, another);
    }
}
