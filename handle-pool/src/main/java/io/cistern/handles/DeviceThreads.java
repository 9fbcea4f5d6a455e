package io.cistern.handles;

import io.cistern.cuda.Streams;
import io.cistern.errors.UnusableStreamException;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.names.Failures;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/// Finds and changes the handles of one device by the threads that have them.
///
/// **Threads.** Any.
///
/// @param <H> the handle
final class DeviceThreads<H> {
    private final String library;
    private final HandleStrategy strategy;
    private final int device;
    private final PoolState state;
    private final DeviceHandles<H> handles;
    private final LeaseLimit limit;

    /// The number of threads that are taking a handle; closing waits for them.
    private final AtomicInteger entering = new AtomicInteger();

    /// Slots of threads that have handles now.
    private final Set<ThreadSlot<H>> holders = ConcurrentHashMap.newKeySet();

    @SuppressWarnings("ThreadLocalUsage") // one a pool and device, of which there are few
    private final ThreadLocal<ThreadSlot<H>> slots = ThreadLocal.withInitial(ThreadSlot::new);

    DeviceThreads(
            String library,
            HandleStrategy strategy,
            int device,
            PoolState state,
            DeviceHandles<H> handles,
            LeaseLimit limit) {
        this.library = library;
        this.strategy = strategy;
        this.device = device;
        this.state = state;
        this.handles = handles;
        this.limit = limit;
    }

    /// Returns the calling thread's slot.
    ThreadSlot<H> slot() {
        return slots.get();
    }

    /// Sets a stream in the calling thread's handle; a thread without one takes one first.
    H set(ThreadSlot<H> slot, long stream) {
        if (slot.virtual && stream == Streams.PER_THREAD_DEFAULT) {
            throw new UnusableStreamException(
                    device,
                    stream,
                    "the per-thread default stream is another one whenever a virtual thread changes its carrier: name"
                            + " a stream of your own, or work on a platform thread");
        }
        boolean leased = slot.leases() > 0;
        slot.enterLease(); // so that closing waits
        try {
            if (!leased) {
                state.requireOpen();
            }
            return setHeld(slot, heldBy(slot), stream);
        } finally {
            boolean _ = slot.leaveLease();
        }
    }

    private H setHeld(ThreadSlot<H> slot, PooledHandle<H> held, long stream) {
        while (true) { // ends when no other thread makes a change meanwhile
            int seen = state.changes();
            bind(slot, held, stream);
            if (state.changes() == seen) {
                return held.raw();
            }
        }
    }

    private void bind(ThreadSlot<H> slot, PooledHandle<H> held, long stream) {
        slot.unpublish();
        Optional<GraphMemory> graph = held.workspaces.graphOf(stream);
        if (graph.isPresent() && held.keepFor(graph.get(), handles)) {
            held.workspaces.bind(held.raw(), stream, graph); // not published: it ends with the capture
        } else {
            held.workspaces.bind(held.raw(), stream, Optional.empty());
            slot.publish(held.raw(), stream);
        }
    }

    private PooledHandle<H> heldBy(ThreadSlot<H> slot) {
        PooledHandle<H> held = slot.held();
        if (held != null) {
            return held;
        }
        if (slot.virtual) {
            throw new IllegalStateException("a virtual thread keeps no handle of " + library
                    + ": open a lease around its calls, try (var lease = pool.lease(" + device + ")) { … }");
        }
        PooledHandle<H> taken = take(slot);
        handles.counters.threads.incrementAndGet();
        return taken;
    }

    private PooledHandle<H> take(ThreadSlot<H> slot) {
        entering.incrementAndGet();
        boolean entered = false;
        try {
            state.requireOpen(); // the closing thread may have checked `entering` before this thread raised it
            LeaseLimit.Holder holder = slot.holder;
            PooledHandle<H> handle = holder == null ? handles.take(this::collectEnded) : takeLimited(holder);
            slot.hold(handle);
            holders.add(slot);
            entered = true;
            return handle;
        } finally {
            if (!entered) {
                giveUp(slot);
            }
            entering.decrementAndGet();
        }
    }

    private PooledHandle<H> takeLimited(LeaseLimit.Holder holder) {
        holder.enter(limit, handles);
        boolean taken = false;
        try {
            PooledHandle<H> handle = handles.take(this::collectEnded);
            taken = true;
            return handle;
        } finally {
            if (!taken) {
                holder.leave();
            }
        }
    }

    /// Wakes waiting threads, so that they notice that the pool is closing.
    void wakeAll() {
        limit.wakeAll();
    }

    /// Returns whether threads are taking handles now.
    boolean areSomeEntering() {
        return entering.get() > 0;
    }

    /// @return false if another thread took the handle
    private boolean giveUp(ThreadSlot<H> slot) {
        PooledHandle<H> held = slot.release();
        if (held == null) {
            return false;
        }
        try {
            handles.destroy(held);
        } finally {
            slot.leaveLimit();
        }
        return true;
    }

    /// Opens a lease of the calling thread.
    void enter(ThreadSlot<H> slot) {
        boolean leased = slot.leases() > 0;
        slot.enterLease();
        boolean entered = false;
        try {
            if (!leased) {
                state.requireOpen();
            }
            if (slot.held() == null) {
                PooledHandle<H> _ = slot.virtual ? take(slot) : heldBy(slot);
            }
            handles.counters.leases.incrementAndGet();
            entered = true;
        } finally {
            if (!entered) {
                boolean _ = slot.leaveLease();
            }
        }
    }

    /// Ends a lease of the calling thread.
    void leave(ThreadSlot<H> slot) {
        if (slot.leaveLease() && slot.virtual) {
            handles.giveBack(slot);
            holders.remove(slot);
        }
    }

    /// Handles the end of a stream, which nobody may use any more.
    void streamEnds(long stream) {
        holders.forEach(slot -> slot.unpublish(stream));
    }

    /// Takes the handles of threads that have ended.
    void collectEnded() {
        holders.removeIf(this::isCollected);
    }

    private boolean isCollected(ThreadSlot<H> slot) {
        boolean ended = slot.isOwnerEnded();
        if (ended && isTaken(slot)) {
            count(slot);
        }
        return ended;
    }

    /// Takes the handle of a thread that has ended.
    ///
    /// @return false if another thread took it
    private boolean isTaken(ThreadSlot<H> slot) {
        boolean keeps = slot.virtual || strategy == HandleStrategy.SHARED || !handles.isQuiet();
        return keeps ? handles.giveBack(slot) : giveUp(slot);
    }

    private void count(ThreadSlot<H> slot) {
        if (slot.leases() > 0) {
            handles.counters.abandonedLeases.incrementAndGet();
        }
        if (!slot.virtual) {
            handles.countEnded(slot);
        }
    }

    /// Returns the names of the threads that have open leases.
    List<String> leasing() {
        return holders.stream()
                .filter(slot -> slot.leases() > 0)
                .map(slot -> slot.name)
                .toList();
    }

    /// Destroys the handles of all threads; called when the pool is closed.
    void close(Failures failures) {
        collectEnded();
        holders.forEach(slot -> failures.gather(() -> giveUp(slot)));
        holders.clear();
    }
}
