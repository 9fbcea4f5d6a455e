package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.internal.names.Failures;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Holds the handles of one device.
///
/// Invariant, under the lock: `alive` = handles that threads have + idle handles + handles that are being
/// created or destroyed + handles that only graphs need ≤ `maxHandles`.
///
/// **Threads.** Any. No thread holds the lock during a call of the library.
///
/// @param <H> the handle
final class DeviceHandles<H> {
    final HandleCounters counters = new HandleCounters();

    private final HandleLibrary<H> library;
    private final HandlePoolOptions options;
    private final DeviceMemory memory;
    private final int device;
    private final PoolState state;
    private final LibraryCalls<H> calls;

    /// All handles that exist, so that their workspaces can be found.
    private final Set<PooledHandle<H>> handles = ConcurrentHashMap.newKeySet();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition cameBack = lock.newCondition();

    /// Guarded by the lock, as are the next two fields.
    private final IdleHandles<H> idle = new IdleHandles<>();

    private int alive;

    /// The most handles that were alive at once.
    private int peak;

    DeviceHandles(
            HandleLibrary<H> library, HandlePoolOptions options, DeviceMemory memory, int device, PoolState state) {
        this.library = library;
        this.options = options;
        this.memory = memory;
        this.device = device;
        this.state = state;
        this.calls = new LibraryCalls<>(library, memory, device, counters);
    }

    /// Returns a handle for the calling thread, from the first of these that has one:
    ///
    /// 1. the idle handles;
    /// 2. threads that have ended;
    /// 3. the library, which creates one if the limit allows it;
    /// 4. the first thread that gives one back.
    ///
    /// @param collectEnded takes the handles of threads that have ended
    /// @throws HandleException if the library creates none, or none comes back in time
    PooledHandle<H> take(Runnable collectEnded) {
        PooledHandle<H> taken = pollIdle();
        if (taken == null) {
            collectEnded.run();
            taken = idleOrReserved();
        }
        if (taken != null) {
            return taken;
        }
        return create();
    }

    private @Nullable PooledHandle<H> pollIdle() {
        lock.lock();
        try {
            return polled();
        } finally {
            lock.unlock();
        }
    }

    private @Nullable PooledHandle<H> polled() {
        PooledHandle<H> last = idle.pop();
        if (last != null) {
            counters.reused.incrementAndGet();
            long thread = Thread.currentThread().threadId();
            if (last.lastThread != thread) {
                counters.shared.incrementAndGet();
                last.lastThread = thread;
            }
        }
        return last;
    }

    /// @return null if the caller may create a handle, which is counted already
    private @Nullable PooledHandle<H> idleOrReserved() {
        lock.lock();
        try {
            PooledHandle<H> last = polled();
            if (last == null && alive >= options.maxHandles()) {
                last = awaitIdle();
            }
            if (last == null) {
                alive++;
                peak = Math.max(peak, alive);
            }
            return last;
        } finally {
            lock.unlock();
        }
    }

    /// @return null if the caller may create a handle
    private @Nullable PooledHandle<H> awaitIdle() {
        return during(() -> awaitIdleUntil(System.nanoTime() + HandlePoolOptions.nanos(options.maxWait())));
    }

    /// A wait for other threads.
    ///
    /// @param <T> the result
    interface Wait<T> {
        /// Waits.
        @Nullable
        T run() throws InterruptedException;
    }

    /// Waits for other threads; counts and records it.
    ///
    /// @throws HandleException if the thread is interrupted
    <T> @Nullable T during(Wait<T> wait) {
        var event = new HandleWaitEvent();
        event.begin();
        counters.waits.incrementAndGet();
        long start = System.nanoTime();
        try {
            return wait.run();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new HandleException("interrupted while waiting for a handle of " + library.name(), interrupted);
        } finally {
            counters.waitNanos.addAndGet(System.nanoTime() - start);
            event.library = library.name();
            event.device = device;
            event.commit();
        }
    }

    private @Nullable PooledHandle<H> awaitIdleUntil(long deadline) throws InterruptedException {
        long left = deadline - System.nanoTime();
        while (true) {
            state.requireOpen();
            PooledHandle<H> last = polled();
            if (last != null || alive < options.maxHandles()) {
                return last;
            }
            if (left <= 0) {
                throw new HandleException("all " + alive + " handles of " + library.name() + " on device " + device
                        + " that the pool may have are in use, and none came back in " + options.maxWait()
                        + ": set a higher maxHandles, or use fewer threads at once");
            }
            left = cameBack.awaitNanos(left);
        }
    }

    /// Wakes waiting calls, so that they notice that the pool is closed.
    void wakeAll() {
        lock.lock();
        try {
            cameBack.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private PooledHandle<H> create() {
        boolean created = false;
        PooledHandle<H> empty = null;
        try {
            empty = new PooledHandle<>(new Workspaces<>(library, memory, device, library.workspaceBytes(device)));
            empty.lastThread = Thread.currentThread().threadId();
            handles.add(empty);
            calls.create(empty, this::makeRoom);
            created = true;
            return empty;
        } finally {
            if (!created && empty != null && empty.isCreated()) {
                destroy(empty);
            } else if (!created) {
                gone(empty);
            }
        }
    }

    private void makeRoom() {
        trim(Duration.ZERO);
        releaseWorkspaces();
    }

    private void gone(@Nullable PooledHandle<H> handle) {
        if (handle != null) {
            handles.remove(handle);
        }
        lock.lock();
        try {
            alive--;
            cameBack.signal();
        } finally {
            lock.unlock();
        }
    }

    /// Takes the handle of a thread that no longer uses it. The handle is pushed under the same lock, so a
    /// thread that looks for an idle one can't miss it.
    ///
    /// @return false if the thread had none, or another thread took it
    boolean giveBack(ThreadSlot<H> slot) {
        PooledHandle<H> handle;
        lock.lock();
        try {
            handle = slot.release();
            if (handle == null) {
                return false;
            }
            handle.workspaces.unbind();
            idle.push(handle);
            cameBack.signal();
        } finally {
            lock.unlock();
        }
        slot.leaveLimit();
        if (isQuiet()) {
            handle.workspaces.freeOrphans();
        }
        return true;
    }

    /// Returns whether handles may be destroyed: no stream of the device is captured. A library that destroys a
    /// handle waits for all work of the device, which would end a capture.
    boolean isQuiet() {
        return !memory.moduleSupport().isCapturing(device);
    }

    /// Counts a platform thread that has ended.
    void countEnded(ThreadSlot<H> slot) {
        long lifeSpan = slot.nanosSinceTaken();
        var event = new HandleThreadEndedEvent();
        event.library = library.name();
        event.device = device;
        event.endedThread = slot.name;
        event.lifeSpan = lifeSpan;
        event.commit();
        counters.lifeSpans.add(lifeSpan);
    }

    /// Destroys a handle that no thread has, once no graph needs it.
    void destroy(PooledHandle<H> handle) {
        try {
            handle.workspaces.releaseAll();
        } finally {
            if (handle.end()) {
                try {
                    calls.destroy(handle);
                } finally {
                    gone(handle);
                }
            }
        }
    }

    /// Destroys handles that have been idle for some time; does nothing while a stream of the device is
    /// captured.
    ///
    /// @return the number of handles
    int trim(Duration idleFor) {
        return isQuiet() ? trimNow(idleFor) : 0;
    }

    private int trimNow(Duration idleFor) {
        Failures failures = new Failures();
        int count = 0;
        for (PooledHandle<H> old = takeOld(idleFor); old != null; old = takeOld(idleFor)) {
            PooledHandle<H> each = old;
            failures.gather(() -> destroy(each));
            count++;
        }
        failures.rethrow();
        return count;
    }

    private @Nullable PooledHandle<H> takeOld(Duration idleFor) {
        lock.lock();
        try {
            return idle.takeOld(HandlePoolOptions.nanos(idleFor));
        } finally {
            lock.unlock();
        }
    }

    /// Destroys all handles that no thread has; called when the pool is closed.
    void close() {
        int _ = trimNow(Duration.ZERO);
    }

    /// Gives back workspaces that no call can be using; does nothing while a stream of the device is captured.
    ///
    /// @return the number of bytes given back
    long releaseWorkspaces() {
        long byteSize = 0;
        if (isQuiet()) {
            for (PooledHandle<H> handle : handles) {
                byteSize += handle.workspaces.release();
            }
        }
        return byteSize;
    }

    void streamEnds(long stream) {
        handles.forEach(handle -> handle.workspaces.streamEnds(stream));
    }

    HandlePoolStatistics statistics() {
        int aliveNow;
        int idleNow;
        int peakNow;
        lock.lock();
        try {
            aliveNow = alive;
            idleNow = idle.count();
            peakNow = peak;
        } finally {
            lock.unlock();
        }
        RuntimeException failure = counters.lastFailure;
        long workspaces =
                handles.stream().mapToLong(each -> each.workspaces.count()).sum();
        return new HandlePoolStatistics(
                counters.threads.get(),
                counters.lifeSpans.now(),
                counters.leases.get(),
                counters.abandonedLeases.get(),
                counters.created.get(),
                counters.destroyed.get(),
                counters.reused.get(),
                counters.shared.get(),
                aliveNow,
                peakNow,
                idleNow,
                counters.waits.get(),
                counters.waitNanos.get(),
                counters.failedCreations.get(),
                counters.failedDestructions.get(),
                failure == null ? "" : failure.toString(),
                workspaces,
                workspaces * library.workspaceBytes(device));
    }
}
