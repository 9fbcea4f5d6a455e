package io.cistern;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.Availability;
import io.cistern.spi.HostMemory;
import io.cistern.spi.MemorySleep;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Puts pools to sleep together, and wakes them together.
///
/// 1. **Sleep**: each pool refuses allocations and waits for those under way, then its allocator gives the
/// memory back. If one pool fails, the pools before it are woken.
/// 2. **Wake**: the memory of all pools comes back before any of it is used again. If one pool fails, all stay
/// asleep, and nothing is lost.
///
/// Both operations skip a pool that has drained in between, since it has no memory.
///
/// **Threads.** Any. Pools are locked in the order of their ids.
final class PoolSleep {
    private final DeviceMemory memory;
    private final List<MemoryPool> pools;

    PoolSleep(DeviceMemory memory, List<MemoryPool> pools) {
        this.memory = memory;
        this.pools =
                pools.stream().sorted(Comparator.comparingLong(MemoryPool::id)).toList();
    }

    TrimResult sleep(SleepMode mode) {
        lock();
        try {
            pools.forEach(this::requireAble);
            return sleepAll(mode);
        } finally {
            unlock();
        }
    }

    private void requireAble(MemoryPool pool) {
        Availability able = sleeps(pool).canSleep();
        if (!able.available()) {
            throw new UnsupportedOperationException(pool + " can't sleep: " + able.reason());
        }
        IntStream.range(0, memory.environment().deviceCount())
                .filter(device -> pool.reservedBytes(device).orElse(0) > 0)
                .forEach(device -> memory.captures.requireNone(device, pool + " can't sleep"));
    }

    private static MemorySleep sleeps(MemoryPool pool) {
        return pool.opened()
                .extension(MemorySleep.class)
                .orElseThrow(() -> new UnsupportedOperationException(pool
                        + " can't sleep: its allocator lacks the extension io.cistern.spi.MemorySleep, which"
                        + " caching has"));
    }

    private TrimResult sleepAll(SleepMode mode) {
        List<MemoryPool> fallen = new ArrayList<>();
        List<TrimResult> results = new ArrayList<>();
        try {
            for (MemoryPool pool : pools) {
                boolean awake = !pool.isAsleep();
                results.add(sleep(pool, mode));
                if (awake) {
                    fallen.add(pool);
                }
            }
            return TrimResult.sum(results);
        } catch (RuntimeException | Error failure) {
            wakeAfter(fallen, failure);
            throw failure;
        }
    }

    private TrimResult sleep(MemoryPool pool, SleepMode mode) {
        MemorySleep sleeps = sleeps(pool);
        memory.pools().setAsleep(pool.id(), true);
        pool.opened().sleep();
        try {
            return sleeps.sleep(mode, host());
        } finally {
            if (!sleeps.isAsleep() || pool.isDrained()) {
                awake(pool);
            }
        }
    }

    /// Returns the cache of pinned memory if there is one.
    private HostMemory host() {
        ModuleSupport modules = memory.moduleSupport();
        return modules.attached(HostMemory.class)
                .orElseGet(
                        () -> modules.attachment(DriverHostMemory.class, _ -> new DriverHostMemory(memory.driver())));
    }

    private void awake(MemoryPool pool) {
        memory.pools().setAsleep(pool.id(), false);
        pool.opened().wake();
    }

    private void wakeAfter(List<MemoryPool> fallen, Throwable failure) {
        try {
            wakeAll(fallen);
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
        }
    }

    void wake() {
        lock();
        try {
            wakeAll(asleep());
        } catch (DeviceOutOfMemoryException noMemory) {
            if (giveBackIdle(noMemory.device()) == 0) {
                throw noMemory;
            }
            wakeAll(asleep());
        } finally {
            unlock();
        }
    }

    private List<MemoryPool> asleep() {
        return pools.stream().filter(MemoryPool::isAsleep).toList();
    }

    /// Makes all allocators give back their idle memory.
    private long giveBackIdle(int device) {
        TrimMode mode = memory.captures.isOn(device) ? TrimMode.WITHOUT_WAITING : TrimMode.SYNCHRONIZE;
        return memory.trim(device, 0, mode).returnedBytes();
    }

    private void wakeAll(List<MemoryPool> sleeping) {
        // An array, so that a waking, which holds a lock, is never lost because the Java heap is full.
        MemorySleep.@Nullable Waking[] wakings = new MemorySleep.Waking[sleeping.size()];
        try {
            for (int i = 0; i < wakings.length; i++) {
                wakings[i] = sleeps(sleeping.get(i)).wake();
            }
            for (int i = 0; i < wakings.length; i++) {
                Objects.requireNonNull(wakings[i]).commit();
                awake(sleeping.get(i)); // Not after the loop: if a commit throws, the pools before it are awake.
            }
        } finally {
            for (int i = wakings.length - 1; i >= 0; i--) {
                MemorySleep.Waking waking = wakings[i];
                if (waking != null) {
                    waking.close();
                }
            }
        }
    }

    private void lock() {
        pools.forEach(pool -> pool.sleeping.lock());
    }

    /// Needs no Java heap.
    private void unlock() {
        for (int i = 0; i < pools.size(); i++) {
            pools.get(i).sleeping.unlock();
        }
    }
}
