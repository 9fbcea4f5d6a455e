package io.cistern.caching;

import io.cistern.internal.names.Failures;
import io.cistern.internal.threads.HeldLock;
import io.cistern.spi.Availability;
import io.cistern.spi.HostMemory;
import io.cistern.spi.MemorySleep;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimResult;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;

/// Puts a caching allocator to sleep and wakes it, on all its devices or on none.
///
/// **Threading.** One lock is held from the start of a wake until its decision; closing the allocator takes it too.
final class CacheSleep implements MemorySleep {
    private final Availability able;
    private final HeldLock lock = new HeldLock();
    private final List<PageSleep> devices = new CopyOnWriteArrayList<>();
    private volatile boolean asleep;

    CacheSleep(Availability able) {
        this.able = able;
    }

    void add(PageSleep device) {
        devices.add(device);
    }

    @Override
    public Availability canSleep() {
        return able;
    }

    @Override
    public boolean isAsleep() {
        return asleep;
    }

    @Override
    public TrimResult sleep(SleepMode mode, HostMemory host) {
        lock.lock();
        try {
            List<TrimResult> results = new ArrayList<>();
            for (PageSleep device : devices) {
                results.add(device.sleep(mode, host));
            }
            asleep = true;
            return TrimResult.sum(results);
        } catch (RuntimeException | Error failure) {
            wakeAfter(failure);
            throw failure;
        } finally {
            lock.unlock();
        }
    }

    /// Wakes the devices again, unless the allocator was already asleep.
    private void wakeAfter(Throwable failure) {
        if (asleep) {
            return;
        }
        try (Waking waking = wake()) {
            waking.commit();
        } catch (RuntimeException second) {
            asleep = true;
            failure.addSuppressed(second);
        }
    }

    @Override
    public Waking wake() {
        lock.lock();
        int woken = 0;
        try {
            Decision decision = new Decision();
            for (; woken < devices.size(); woken++) {
                devices.get(woken).wake();
            }
            return decision;
        } catch (RuntimeException | Error failure) {
            try {
                settle(woken, false);
            } finally {
                lock.unlock();
            }
            throw failure;
        }
    }

    private void settle(int count, boolean awake) {
        for (int i = 0; i < count; i++) {
            devices.get(i).settle(awake);
        }
    }

    private final class Decision implements Waking {
        private boolean decided;

        @Override
        public void commit() {
            decide(true);
        }

        @Override
        public void close() {
            if (!decided) {
                decide(false);
            }
        }

        private void decide(boolean awake) {
            decided = true;
            asleep = !awake;
            try {
                settle(devices.size(), awake);
            } catch (OutOfMemoryError full) {
                asleep = true; // some pages stay asleep until the next wake
                throw full;
            } finally {
                lock.unlock();
            }
        }
    }

    /// Runs an action while nothing falls asleep or wakes.
    void exclude(Runnable action) {
        try (HeldLock _ = lock.held()) {
            action.run();
        }
    }

    /// Like [#exclude(Runnable)], but does not call the function if the lock is held, even by this thread:
    /// a wake may take long, and may itself lack memory.
    ///
    /// @return `otherwise` if the function was not called
    <T> T exclude(Supplier<T> function, T otherwise) {
        if (lock.isHeldByCurrentThread() || !lock.tryLock()) {
            return otherwise;
        }
        try {
            return function.get();
        } finally {
            lock.unlock();
        }
    }

    void close(Runnable closing) {
        exclude(() -> {
            Failures failures = new Failures();
            failures.gather(closing);
            devices.forEach(device -> failures.gather(device::close));
            failures.rethrow();
        });
    }
}
