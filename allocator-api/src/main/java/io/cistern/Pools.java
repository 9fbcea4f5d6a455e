package io.cistern;

import io.cistern.internal.names.NearestName;
import io.cistern.internal.names.ThreadNames;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Opens and lists the pools of one [DeviceMemory], puts them to sleep and wakes them. [DeviceMemory#pools]
/// returns this object.
///
/// **Scopes without a `try` block.** [#begin] opens a scope and begins a use of the pool, [#end] closes the
/// scope, and [#release] ends the use. So the pool stays open for memory that outlives the scope. The code
/// that calls [#release] needs only the pool's id.
///
/// **Threads.** Any thread may call any method at any time. A thread can end only scopes that it began
/// itself.
public final class Pools {
    private record Begun(long poolId, int device, long threadId) {}

    private final DeviceMemory memory;
    /// The ids of the pools that are asleep.
    private final Set<Long> asleep = new HashSet<>();

    private final CopyOnWriteArrayList<MemoryPool> pools = new CopyOnWriteArrayList<>();
    private final Map<Begun, Deque<Scope>> begun = new ConcurrentHashMap<>();

    /// By pool id, the number of scopes that were ended and not yet released.
    private final Map<Long, AtomicInteger> unreleased = new ConcurrentHashMap<>();

    /// Whether any pool is asleep. If none is, buffers need no further check.
    volatile boolean anyAsleep;

    Pools(DeviceMemory memory) {
        this.memory = memory;
    }

    /// Opens a pool from a spec: see [MemoryPool.Builder#spec]. To open a pool with more options, use
    /// [MemoryPool#builder].
    ///
    /// @throws io.cistern.errors.ConfigurationException if the spec is invalid, or its allocator or source
    ///     can't run here
    /// @throws IllegalStateException if the device memory is closed
    public MemoryPool open(String spec) {
        return MemoryPool.builder(memory).spec(spec).open();
    }

    /// Returns the pools that are in use or still have live blocks, in the order of opening.
    public List<MemoryPool> all() {
        return undrained().toList();
    }

    /// Gives idle memory on a device back to the driver, from all allocators that are not pools, until
    /// these allocators have at most `keepBytes` reserved together. [DeviceMemory#trim] also trims pools.
    ///
    /// @param keepBytes bytes that may stay reserved, at least 0; only bytes that these allocators report as
    ///     reserved count
    /// @return the bytes that these allocators gave back, and the memory that stays
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public TrimResult trimAllOthers(int device, long keepBytes, TrimMode mode) {
        Set<OpenAllocator> ofPools = pools.stream().map(Allocator::opened).collect(Collectors.toSet());
        return memory.trim(device, keepBytes, mode, allocator -> !ofPools.contains(allocator));
    }

    /// Puts all pools with a [tag][MemoryPool.Builder#tag] to sleep: see [MemoryPool#sleep]. If one of them
    /// fails to sleep, this call wakes those that it has put to sleep.
    ///
    /// @return the bytes given back and the memory that stays, summed over all of these pools
    /// @throws IllegalArgumentException if no pool has the tag
    /// @throws UnsupportedOperationException if one of these pools can't sleep
    public TrimResult sleep(String tag, SleepMode mode) {
        return new PoolSleep(memory, tagged(tag)).sleep(mode);
    }

    /// Wakes all sleeping pools with a tag: see [MemoryPool#wake].
    ///
    /// @throws IllegalArgumentException if no pool has the tag
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory for all of these
    ///     pools; all stay asleep then
    public void wake(String tag) {
        new PoolSleep(memory, tagged(tag)).wake();
    }

    private List<MemoryPool> tagged(String tag) {
        List<MemoryPool> tagged =
                undrained().filter(pool -> pool.tag().equals(tag)).toList();
        if (tagged.isEmpty()) {
            List<String> known = undrained().map(MemoryPool::tag).toList();
            throw new IllegalArgumentException("no pool has the tag '" + tag + "'; known, nearest first: "
                    + NearestName.listed(tag, known, "Pools.all"));
        }
        return tagged;
    }

    /// Returns the pools that have not drained. A full Java heap can prevent the [removal][#remove] of a
    /// drained pool.
    private Stream<MemoryPool> undrained() {
        return pools.stream().filter(pool -> !pool.isDrained());
    }

    /// Opens a scope in which a pool serves the calling thread on a device, for code that can't use a `try`
    /// block. This also begins a use of the pool, which lasts until [#release]. A thread must end its
    /// scopes in reverse order, whether this method or [Allocator#enter] opened them.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalArgumentException if the pool belongs to another device memory
    /// @throws IllegalStateException if the pool is closed
    public void begin(MemoryPool pool, int device) {
        own(pool).beginUse();
        Scope scope;
        try {
            scope = pool.enter(ScopeOptions.all().device(device), () -> {});
        } catch (Throwable failure) {
            pool.endUse();
            throw failure;
        }
        begun.computeIfAbsent(here(pool, device), _ -> new ArrayDeque<>()).push(scope);
    }

    /// Ends the scope that the calling thread [began][#begin] last for a pool and a device.
    ///
    /// @throws IllegalArgumentException if the pool belongs to another device memory
    /// @throws IllegalStateException if this thread has no such scope open, or if that scope is not its
    ///     innermost; nothing changes then
    public void end(MemoryPool pool, int device) {
        Begun key = here(own(pool), device);
        Deque<Scope> scopes = begun.get(key);
        if (scopes == null) {
            throw new IllegalStateException(
                    "no scope of " + pool + " was begun on device " + device + " by thread " + ThreadNames.ofCaller());
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

    private MemoryPool own(MemoryPool pool) {
        if (pool.memory() != memory) {
            throw new IllegalArgumentException(pool + " belongs to another DeviceMemory");
        }
        return pool;
    }

    /// Ends a use of a pool that [#begin] began. Any thread may call this, after the scope's [#end].
    ///
    /// @param poolId the pool's [id][MemoryPool#id]
    /// @throws IllegalArgumentException if no pool has that id, or if the pool has drained
    /// @throws IllegalStateException if the pool was already released once for each ended scope
    public void release(long poolId) {
        MemoryPool pool = undrained()
                .filter(each -> each.id() == poolId)
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("no pool has id " + poolId + ", or it has drained"));
        AtomicInteger ended = unreleased.get(poolId);
        if (ended == null || ended.getAndUpdate(now -> Math.max(0, now - 1)) == 0) {
            throw new IllegalStateException(pool + " has already been released once for each begin and end");
        }
        pool.endUse();
    }

    /// Adds a pool, unless its allocator has already been closed.
    void add(MemoryPool pool) {
        pool.opened().serve(new OpenAllocator.Pool(pool.tag(), pool::lendsNow, pool.upstream()));
        pools.add(pool);
        if (pool.isDrained()) {
            remove(pool.id());
        }
    }

    void remove(long id) {
        pools.removeIf(pool -> pool.id() == id);
        unreleased.remove(id);
        setAsleep(id, false);
    }

    /// Records whether a pool is asleep.
    void setAsleep(long id, boolean sleeps) {
        synchronized (asleep) {
            boolean changed = sleeps ? asleep.add(id) : asleep.remove(id);
            if (changed) {
                anyAsleep = !asleep.isEmpty();
            }
        }
    }

    boolean isAsleep(MemoryPool pool) {
        synchronized (asleep) {
            return asleep.contains(pool.id());
        }
    }
}
