package io.cistern.internal.events;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.threads.NodeQueue;
import io.cistern.internal.threads.Turn;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Notifies the observers of one device memory of events, and keeps the events that wait to be delivered.
///
/// **Idea.** Usually there are no observers. So code that has an event checks [#any] first, or
/// [#anyOfBlocks] for block events, by far the most frequent. Observers run under no lock of an allocator:
/// an event that is [posted][#post] under a lock is delivered when the thread has left the allocator
/// ([#deliver]), or earlier by another thread that has its own event.
///
/// **Order.** An event is delivered after those that caused it: a block after the segment that contains it,
/// even if another thread obtained the segment. So posted events of all threads are in one queue, and a
/// thread delivers them, or waits until they are delivered, before it delivers its own. The wait is
/// bounded, since an observer may wait for this very thread.
///
/// **A full Java heap.** Delivering an event never throws. Events are made here, and those that can't be
/// made or kept are lost and [counted][#lost]. An observer that throws misses that event; the first failure
/// is logged. Nobody is notified of events that an observer causes in the same device memory.
///
/// **Threads.** Any; observers are called on the thread that caused the event, or on a thread that delivers
/// posted events before its own.
public final class Observers {
    /// How long a thread waits for observers that another thread is calling.
    private static final long PATIENCE_NANOS = 100_000_000;

    /// An observer. A consumer that is added twice has two of these objects.
    public static final class Observer {
        private final Consumer<? super MemoryEvent> told;
        private final boolean ofBlocks;

        /// @param ofBlocks whether it is also notified of allocated and freed blocks
        public Observer(Consumer<? super MemoryEvent> told, boolean ofBlocks) {
            this.told = told;
            this.ofBlocks = ofBlocks;
        }
    }

    /// Replaced under the monitor.
    private volatile Observer[] all = {};

    /// Whether there are any.
    private volatile boolean any;

    /// Whether any of them is notified of blocks.
    private volatile boolean anyOfBlocks;

    /// The posted events of all threads that are not yet delivered, in one order.
    private final NodeQueue<MemoryEvent> posted = new NodeQueue<>();

    /// The number of posted events whose delivery has not finished, usually 0.
    private final AtomicInteger waiting = new AtomicInteger();

    /// Taken to deliver posted events.
    private final Turn turn = new Turn();

    /// Whether the thread is delivering an event.
    @SuppressWarnings("ThreadLocalUsage") // a thread may deliver for several device memories
    private final ThreadLocal<boolean[]> telling = ThreadLocal.withInitial(() -> new boolean[1]);

    private final AtomicLong lost = new AtomicLong();

    private volatile boolean hasLogged;

    /// Returns whether there are observers.
    public boolean any() {
        return any;
    }

    /// Returns whether there are observers of allocated and freed blocks.
    public boolean anyOfBlocks() {
        return anyOfBlocks;
    }

    /// Returns the number of events that no observer received, because the Java heap was full.
    public long lost() {
        return lost.get();
    }

    /// Notifies an observer of events from now on.
    public synchronized void add(Observer observer) {
        Events.prepare();
        Observer[] more = Arrays.copyOf(all, all.length + 1);
        more[all.length] = observer;
        replace(more);
    }

    /// Stops notifying an observer of events. Does nothing if it was not added, or is already removed.
    public synchronized void remove(Observer observer) {
        int at = Arrays.asList(all).indexOf(observer);
        if (at >= 0) {
            Observer[] fewer = Arrays.copyOf(all, all.length - 1);
            System.arraycopy(all, at + 1, fewer, at, fewer.length - at);
            replace(fewer);
        }
    }

    private void replace(Observer[] observers) {
        boolean someOfBlocks = false;
        for (Observer each : observers) {
            someOfBlocks |= each.ofBlocks;
        }
        all = observers;
        any = observers.length != 0;
        anyOfBlocks = someOfBlocks;
    }

    /// Notifies the observers of an event, after all that were [posted][#post] before. Must not be called
    /// under a lock of an allocator.
    @SuppressWarnings("CatchingUnchecked") // losing the event is better than losing the block
    public <T> void tell(
            Events.Factory<T> factory, T about, int device, long first, long second, long third, long fourth) {
        try {
            boolean[] mine = telling.get();
            if (!mine[0]) {
                mine[0] = true;
                try {
                    tellPosted();
                    toAll(factory.make(about, device, first, second, third, fourth));
                } finally {
                    mine[0] = false;
                }
            }
        } catch (RuntimeException | Error failure) {
            lose(failure);
        }
    }

    /// Notifies the observers of an event without numbers.
    public <T> void tell(Events.Factory<T> factory, T about) {
        tell(factory, about, -1, 0, 0, 0, 0);
    }

    /// Queues an event for later delivery, if there are observers. Can be called under any lock.
    @SuppressWarnings("CatchingUnchecked") // as above
    public <T> void post(Events.Factory<T> factory, T about, int device, long first, long second, long third) {
        if (!any()) {
            return;
        }
        try {
            MemoryEvent event = telling.get()[0] ? null : factory.make(about, device, first, second, third, 0);
            if (event != null) {
                NodeQueue.Node<MemoryEvent> node = new NodeQueue.Node<>(event);
                waiting.incrementAndGet();
                posted.add(node);
            }
        } catch (RuntimeException | Error failure) {
            lose(failure);
        }
    }

    /// Notifies the observers of all posted events. Must not be called under a lock of an allocator.
    ///
    /// @return whether there were any
    public boolean deliver() {
        boolean any = waiting.get() != 0;
        if (any) {
            tell(Events.NOTHING_MORE, "");
        }
        return any;
    }

    /// Delivers the events posted so far. If another thread is delivering, waits for it, since the caller's
    /// own event may follow from what that thread delivers.
    private void tellPosted() {
        int left = waiting.get();
        if (left == 0) {
            return;
        }
        boolean begun = turn.begin(PATIENCE_NANOS);
        try {
            NodeQueue.Node<MemoryEvent> node;
            while (left-- > 0 && (node = posted.poll()) != null) {
                try {
                    toAll(node.value());
                } finally {
                    waiting.decrementAndGet();
                }
            }
        } finally {
            if (begun) {
                turn.end();
            }
        }
    }

    @SuppressWarnings("CatchingUnchecked")
    private void toAll(@Nullable MemoryEvent event) {
        if (event == null) {
            return;
        }
        boolean ofBlock = event instanceof MemoryEvent.Allocated || event instanceof MemoryEvent.Freed;
        for (Observer observer : all) {
            if (ofBlock && !observer.ofBlocks) {
                continue;
            }
            try {
                observer.told.accept(event);
            } catch (RuntimeException | Error broken) {
                log("an observer of device memory failed; later failures are not logged", broken);
            }
        }
    }

    private void lose(Throwable failure) {
        lost.incrementAndGet();
        log("an event of device memory was lost; later losses are only counted", failure);
    }

    @SuppressWarnings("CatchingUnchecked")
    private void log(String text, Throwable failure) {
        if (hasLogged) {
            return;
        }
        hasLogged = true;
        try {
            System.getLogger(Observers.class.getName()).log(Level.WARNING, text, failure);
        } catch (RuntimeException | Error alsoBroken) {
            hasLogged = false; // a diagnostic must not fail the call that it is about; the next failure is logged
        }
    }
}
