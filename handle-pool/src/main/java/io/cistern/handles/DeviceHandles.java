package io.cistern.handles;

import io.cistern.DeviceMemory;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// The handles of one device. Invariant, under the lock: `alive` = handles that threads have + idle ones +
/// those that are being created or destroyed + those that only graphs need ≤ `maxHandles`.
///
/// **Threads.** Any. The lock covers no call of the library.
///
/// @param <H> the handle
final class DeviceHandles<H> {
    final HandleCounters counters = new HandleCounters();

    private final HandleLibrary<H> library;
    private final HandlePoolOptions options;
    private final DeviceMemory memory;
    private final int device;
    private final LibraryCalls<H> calls;

    /// All that exist, for their workspaces.
    private final Set<PooledHandle<H>> handles = ConcurrentHashMap.newKeySet();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition cameBack = lock.newCondition();

    /// The one that came back last is the last. Guarded by the lock, as is the next.
    private final Deque<PooledHandle<H>> idle = new ArrayDeque<>();

    private int alive;

    DeviceHandles(HandleLibrary<H> library, HandlePoolOptions options, DeviceMemory memory, int device) {
        this.library = library;
        this.options = options;
        this.memory = memory;
        this.device = device;
        this.calls = new LibraryCalls<>(library, memory, device, counters);
    }

    /// Returns a handle for the calling thread:
    ///
    /// 1. an idle one;
    /// 2. one of a thread that has ended;
    /// 3. a new one, if the limit allows it;
    /// 4. else the first that comes back.
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
        PooledHandle<H> last = idle.pollLast();
        if (last != null) {
            counters.reused.increment();
            long thread = Thread.currentThread().threadId();
            if (last.lastThread != thread) {
                counters.shared.increment();
                last.lastThread = thread;
            }
        }
        return last;
    }

    /// @return null if the caller may create one, which is counted already
    private @Nullable PooledHandle<H> idleOrReserved() {
        lock.lock();
        try {
            PooledHandle<H> last = polled();
            if (last == null && alive >= options.maxHandles()) {
                last = awaitIdle();
            }
            if (last == null) {
                alive++;
                counters.peak.accumulateAndGet(alive, Math::max);
            }
            return last;
        } finally {
            lock.unlock();
        }
    }

    /// @return null if the caller may create one
    private @Nullable PooledHandle<H> awaitIdle() {
        var event = new HandleWaitEvent();
        event.begin();
        counters.waits.increment();
        long start = System.nanoTime();
        try {
            return awaitIdleUntil(start + Math.min(options.maxWait().toNanos(), Long.MAX_VALUE / 2));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new HandleException("interrupted while waiting for a handle of " + library.name(), interrupted);
        } finally {
            counters.waitNanos.add(System.nanoTime() - start);
            event.library = library.name();
            event.device = device;
            event.commit();
        }
    }

    private @Nullable PooledHandle<H> awaitIdleUntil(long deadline) throws InterruptedException {
        for (long left = deadline - System.nanoTime(); left > 0; left = cameBack.awaitNanos(left)) {
            PooledHandle<H> last = polled();
            if (last != null || alive < options.maxHandles()) {
                return last;
            }
        }
        throw new HandleException("all " + alive + " handles of " + library.name() + " on device " + device
                + " that the pool may have are in use, and none came back in " + options.maxWait()
                + ": set a higher maxHandles, or use fewer threads at once");
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
            if (!created) {
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

    /// Takes the handle of a thread that uses it no more. A thread that looks for an idle one meanwhile finds it
    /// either way.
    ///
    /// @return false if the thread had none, or another thread took it
    boolean giveBack(ThreadSlot<H> slot) {
        PooledHandle<H> handle;
        Runnable freeing;
        lock.lock();
        try {
            handle = slot.release();
            if (handle == null) {
                return false;
            }
            freeing = handle.workspaces.unbind();
            handle.idleSince = System.nanoTime();
            idle.addLast(handle);
            cameBack.signal();
        } finally {
            lock.unlock();
        }
        freeing.run();
        return true;
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

    /// Destroys a handle that no thread has, as soon as no graph needs it.
    void destroy(PooledHandle<H> handle) {
        handle.workspaces.releaseAll();
        if (handle.end()) {
            calls.destroy(handle);
            gone(handle);
        }
    }

    /// Destroys handles that have been idle for some time.
    ///
    /// @return how many
    int trim(Duration idleFor) {
        List<PooledHandle<H>> old = takeIdle(System.nanoTime() - idleFor.toNanos());
        old.forEach(this::destroy);
        return old.size();
    }

    private List<PooledHandle<H>> takeIdle(long before) {
        lock.lock();
        try {
            List<PooledHandle<H>> old = new ArrayList<>(idle.size());
            while (!idle.isEmpty() && idle.getFirst().idleSince - before <= 0) {
                old.add(idle.removeFirst());
            }
            return old;
        } finally {
            lock.unlock();
        }
    }

    /// Gives back workspaces that no call can be using.
    ///
    /// @return bytes
    long releaseWorkspaces() {
        long byteSize = 0;
        for (PooledHandle<H> handle : handles) {
            byteSize += handle.workspaces.release();
        }
        return byteSize;
    }

    void streamEnds(long stream) {
        handles.forEach(handle -> handle.workspaces.streamEnds(stream));
    }

    HandlePoolStatistics statistics() {
        int aliveNow;
        int idleNow;
        lock.lock();
        try {
            aliveNow = alive;
            idleNow = idle.size();
        } finally {
            lock.unlock();
        }
        RuntimeException failure = counters.lastFailure;
        long workspaces =
                handles.stream().mapToLong(each -> each.workspaces.count()).sum();
        return new HandlePoolStatistics(
                counters.threads.sum(),
                counters.lifeSpans.now(),
                counters.leases.sum(),
                counters.abandonedLeases.sum(),
                counters.created.sum(),
                counters.destroyed.sum(),
                counters.reused.sum(),
                counters.shared.sum(),
                aliveNow,
                counters.peak.get(),
                idleNow,
                counters.waits.sum(),
                counters.waitNanos.sum(),
                counters.failedCreations.sum(),
                counters.failedDestructions.sum(),
                failure == null ? "" : failure.toString(),
                workspaces,
                workspaces * library.workspaceBytes(device));
    }
}
