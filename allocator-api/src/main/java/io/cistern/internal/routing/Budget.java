package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.internal.names.Failures;
import io.cistern.internal.names.Sizes;
import io.cistern.internal.names.StackRoom;
import io.cistern.spi.TrimMode;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// One limit in a tree of limits on requested bytes.
///
/// **Invariants**: 0 ≤ leased ≤ limit at any time, unless the limit was lowered below the bytes in use; leased
/// = the bytes of live blocks charged here + the credit of the [Lease]s of the routes charged here, while no
/// thread is moving bytes between the two.
///
/// **Threads.** Threads take bytes and recall leases as [Budgets] says. They give bytes back at any time.
public final class Budget {
    /// The value of a limit that was lifted.
    public static final long UNLIMITED = Long.MAX_VALUE;

    private final String name;

    /// Changed under the exclusive lock of [Budgets].
    private volatile long limitBytes;

    private final @Nullable Budget parent;
    private final AtomicLong leased = new AtomicLong();

    /// The routes whose blocks are charged here: thousands, if each request has a limit under this one.
    private final Set<Route> routes = ConcurrentHashMap.newKeySet();

    /// Routes that served before this limit began, and whose blocks from that time count here until they
    /// are freed.
    private volatile Route[] former = {};

    /// Bytes that were allocated before this limit began, and not through a route.
    private volatile LongSupplier further = () -> 0;

    /// Sets a limit.
    ///
    /// @param limitBytes the maximum requested bytes of all live blocks
    /// @param parent the limit that these bytes count against too
    public Budget(String name, long limitBytes, @Nullable Budget parent) {
        this.name = name;
        this.limitBytes = checked(limitBytes);
        this.parent = parent;
    }

    public String name() {
        return name;
    }

    public long limitBytes() {
        return limitBytes;
    }

    /// Changes the limit. A limit below the bytes in use refuses every request until there is room.
    public void setLimitBytes(long bytes) {
        checked(bytes);
        StackRoom.require();
        long stamp = Budgets.ORDER.writeLock();
        try {
            boolean lowered = bytes < limitBytes;
            limitBytes = bytes;
            if (lowered) {
                recall(); // leases were taken from the higher limit
            }
        } finally {
            Budgets.ORDER.unlockWrite(stamp);
        }
    }

    /// Counts here the live blocks of a route that no longer serves, or soon will not. Counting it again
    /// does nothing.
    synchronized void count(Route formerRoute) {
        former = Stream.concat(Stream.of(former).filter(each -> !each.retired), Stream.of(formerRoute))
                .distinct()
                .toArray(Route[]::new);
    }

    /// Counts further bytes here, which no thread takes. They replace those of an earlier call.
    public void countToo(LongSupplier bytes) {
        further = bytes;
    }

    /// Needs no Java heap: a drained route counts 0 until it is forgotten.
    private long formerBytes() {
        long bytes = further.getAsLong();
        for (Route route : former) {
            bytes += route.requestedBytes();
        }
        return bytes;
    }

    private synchronized void forget(Predicate<Route> which) {
        former = Stream.of(former).filter(which.negate()).toArray(Route[]::new);
    }

    /// Gives idle memory of the allocators that are charged here back to the driver, without waiting, until
    /// they have at most `keepBytes` reserved together.
    ///
    /// @throws RuntimeException the first failure of an allocator, with the others suppressed in it. All are
    ///     trimmed then
    public void trim(long keepBytes) {
        Map<Meter, Route> allocators = new HashMap<>(); // meters are equal only to themselves
        routes.forEach(route -> allocators.putIfAbsent(route.meter, route));
        for (Route route : former) {
            allocators.putIfAbsent(route.meter, route);
        }
        Failures failures = new Failures();
        Map<Route, Long> reserved = new HashMap<>();
        long excess = -keepBytes;
        for (Route route : allocators.values()) {
            long its = failures.gather(
                    () -> AllocatorCalls.reservedBytes(route.allocator, route, route.device)
                            .orElse(0),
                    0L);
            reserved.put(route, its);
            excess += its;
        }
        for (Map.Entry<Route, Long> each : reserved.entrySet()) {
            long its = each.getValue();
            if (excess > 0 && its > 0) {
                long keep = Math.max(0, its - excess);
                excess -= failures.gather(() -> trim(each.getKey(), keep), 0L);
            }
        }
        failures.rethrow();
    }

    private static long trim(Route route, long keepBytes) {
        return AllocatorCalls.trim(route.allocator, route, route.device, keepBytes, TrimMode.WITHOUT_WAITING, _ -> {})
                .returnedBytes();
    }

    private long checked(long bytes) {
        return Sizes.notNegative("the limit of " + name, bytes);
    }

    @Nullable
    Budget parent() {
        return parent;
    }

    /// Returns the bytes of the live blocks charged here, exact when idle.
    public long usedBytes() {
        long used = leased.get();
        for (Route route : routes) {
            used -= route.leasedCredit();
        }
        return Math.max(0, used + formerBytes());
    }

    boolean tryTake(long byteSize) {
        long now;
        do {
            now = leased.get();
            if (byteSize > limitBytes - now - formerBytes()) {
                return false;
            }
        } while (!leased.compareAndSet(now, now + byteSize));
        return true;
    }

    void giveBack(long byteSize) {
        leased.addAndGet(-byteSize);
    }

    /// Returns the bytes that are not leased.
    long room() {
        return limitBytes - leased.get() - formerBytes();
    }

    void charge(Route route) {
        routes.add(route);
        if (former.length > 0) {
            forget(each -> each == route);
        }
    }

    void uncharge(Route route) {
        routes.remove(route);
    }

    /// Takes back the bytes that threads leased of this budget and have not spent; under the exclusive lock of
    /// [Budgets].
    ///
    /// @return whether there were any
    boolean recall() {
        boolean any = false;
        for (Route route : routes) {
            any |= route.claimLeases();
        }
        if (!any) {
            return false;
        }
        ProcessFence.everywhere();
        long recalled = 0;
        for (Route route : routes) {
            recalled += route.surrenderLeases();
        }
        return recalled > 0;
    }

    @Override
    public String toString() {
        return limitBytes == UNLIMITED
                ? name + ": no limit, " + ByteSizes.exact(usedBytes()) + " in use"
                : name + ": limit of " + ByteSizes.exact(limitBytes) + ", " + usedBytes() + " of them in use";
    }
}
