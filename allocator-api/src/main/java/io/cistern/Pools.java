package io.cistern;

import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.PoolLenders;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The pools of one [io.cistern.DeviceMemory], what they lend, and the scopes that were begun without lexical form.
///
/// `begin` opens a scope and takes a use of the pool; `end` closes the scope; `release` gives the use back. So
/// memory that outlives a region can keep its pool, until whoever knows the pool by its id alone releases it.
///
/// **Threads.** Any. The scopes of a thread are touched by that thread alone.
final class Pools implements PoolLenders {
    private record Begun(long poolId, int device, long threadId) {}

    private final Router router;
    private final Consumer<Boolean> anyAsleep;
    private final Set<MemoryPool> asleep = new HashSet<>();
    private final CopyOnWriteArrayList<MemoryPool> pools = new CopyOnWriteArrayList<>();
    private final Map<Begun, Deque<Scope>> begun = new ConcurrentHashMap<>();

    /// By pool id, how often it was ended and not yet released.
    private final Map<Long, AtomicInteger> unreleased = new ConcurrentHashMap<>();

    /// @param anyAsleep is told when the first pool falls asleep, and when the last one is awake
    Pools(Router router, Consumer<Boolean> anyAsleep) {
        this.router = router;
        this.anyAsleep = anyAsleep;
    }

    /// Adds a pool, unless somebody closed its allocator already.
    void add(MemoryPool pool) {
        pools.add(pool);
        if (pool.isDrained()) {
            remove(pool);
        }
    }

    void remove(MemoryPool pool) {
        pools.remove(pool);
        unreleased.remove(pool.id());
        setAsleep(pool, false);
    }

    /// Notes that a pool is asleep, or that it is no more.
    void setAsleep(MemoryPool pool, boolean sleeps) {
        synchronized (asleep) {
            boolean changed = sleeps ? asleep.add(pool) : asleep.remove(pool);
            if (changed) {
                anyAsleep.accept(!asleep.isEmpty());
            }
        }
    }

    boolean isAsleep(MemoryPool pool) {
        synchronized (asleep) {
            return asleep.contains(pool);
        }
    }

    List<MemoryPool> all() {
        return List.copyOf(pools);
    }

    void begin(MemoryPool pool, int device) {
        Scope scope = pool.entered(() -> pool.allocator().enter(device));
        begun.computeIfAbsent(here(pool, device), _ -> new ArrayDeque<>()).push(scope);
    }

    void end(MemoryPool pool, int device) {
        Begun key = here(pool, device);
        Deque<Scope> scopes = begun.get(key);
        if (scopes == null) {
            throw new IllegalStateException(pool + " was not begun on device " + device + " by thread "
                    + Thread.currentThread().getName());
        }
        scopes.element().close();
        scopes.pop();
        if (scopes.isEmpty()) {
            begun.remove(key);
        }
        unreleased.computeIfAbsent(pool.id(), _ -> new AtomicInteger()).incrementAndGet();
    }

    private static Begun here(MemoryPool pool, int device) {
        return new Begun(pool.id(), device, Thread.currentThread().threadId());
    }

    void release(long poolId) {
        MemoryPool pool = pools.stream()
                .filter(each -> each.id() == poolId)
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("no pool has id " + poolId + ", or it has drained"));
        AtomicInteger ended = unreleased.get(poolId);
        if (ended == null || ended.getAndUpdate(now -> Math.max(0, now - 1)) == 0) {
            throw new IllegalStateException(pool + " was released as often as it was begun and ended");
        }
        pool.endUse();
    }

    @Override
    public long lend(Route refusing, @Nullable LimitHandle limit, long byteSize, long stream) {
        int device = refusing.device();
        for (MemoryPool pool : pools) {
            if (pool.allocator().opened().route(device).sharesMakerWith(refusing)) {
                return 0;
            }
        }
        for (MemoryPool pool : pools) {
            long address = pool.lendsNow() ? router.lend(pool.allocator().opened().route(device, limit), byteSize, stream) : 0;
            if (address != 0) {
                return address;
            }
        }
        return 0;
    }

    @Override
    public String tagOf(OpenAllocator allocator) {
        for (MemoryPool pool : pools) {
            if (pool.allocator().opened() == allocator) {
                return pool.tag();
            }
        }
        return "";
    }
}
