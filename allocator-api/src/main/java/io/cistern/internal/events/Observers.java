package io.cistern.internal.events;

import io.cistern.diagnostics.MemoryEvent;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Tells the observers of one device memory of events, and keeps the events that wait to be told.
///
/// **Idea.** Usually nobody observes. So code that has an event checks [#any] first, and code with events of
/// blocks, which are by far the most, checks [#anyOfBlocks]. Observers run under no lock of an allocator: an
/// event that is [posted][#post] under a lock is told when the thread has left the allocator ([#deliver]).
///
/// **A full Java heap.** Telling an event throws nothing. Events are made here, and those that can't be made or
/// kept are lost and [counted][#lost]. An observer that throws misses that event; the first failure is logged.
/// Nobody is told of events that an observer causes in the same device memory.
///
/// **Threads.** Any; observers are called on the thread that caused the event.
public final class Observers {
    /// The events that the calling thread has to tell, in order. It is a list of links, so a failure to grow
    /// keeps the events in it.
    private static final class Posted {
        @Nullable
        Link first;

        @Nullable
        Link last;

        boolean telling;

        void add(Link link) {
            if (last == null) {
                first = link;
            } else {
                last.next = link;
            }
            last = link;
        }

        /// Removes and returns the oldest event; null if there is none.
        @Nullable
        MemoryEvent poll() {
            Link oldest = first;
            if (oldest == null) {
                return null;
            }
            first = oldest.next;
            if (first == null) {
                last = null;
            }
            return oldest.event;
        }
    }

    private static final class Link {
        final MemoryEvent event;

        @Nullable
        Link next;

        Link(MemoryEvent event) {
            this.event = event;
        }
    }

    /// An observer. A consumer that is added twice has two of these objects.
    public static final class Observer {
        private final Consumer<? super MemoryEvent> told;
        private final boolean ofBlocks;

        /// @param ofBlocks whether it is also told of allocated and freed blocks
        public Observer(Consumer<? super MemoryEvent> told, boolean ofBlocks) {
            this.told = told;
            this.ofBlocks = ofBlocks;
        }
    }

    /// Replaced under the monitor.
    private volatile Observer[] all = {};

    /// Whether there are any.
    private volatile boolean any;

    /// Whether any of them is told of blocks.
    private volatile boolean anyOfBlocks;

    @SuppressWarnings("ThreadLocalUsage") // a thread may tell of several device memories
    private final ThreadLocal<Posted> posted = ThreadLocal.withInitial(Posted::new);

    /// The number of posted events, of all threads, that were not told yet. It is mostly 0, and then a thread
    /// need not look for its own.
    private final AtomicInteger waiting = new AtomicInteger();

    private final AtomicLong lost = new AtomicLong();

    private volatile boolean hasLogged;

    /// Returns whether anybody observes.
    public boolean any() {
        return any;
    }

    /// Returns whether anybody observes blocks that are allocated and freed.
    public boolean anyOfBlocks() {
        return anyOfBlocks;
    }

    /// Returns the number of events that no observer was told of, because the Java heap was full.
    public long lost() {
        return lost.get();
    }

    /// Tells an observer of events from now on.
    public synchronized void add(Observer observer) {
        Events.prepare();
        Observer[] more = Arrays.copyOf(all, all.length + 1);
        more[all.length] = observer;
        replace(more);
    }

    /// Stops telling an observer of events. Does nothing if it was not added, or is removed already.
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

    /// Tells the observers of an event, after those that the thread [posted][#post]. To be called under no lock
    /// of an allocator.
    @SuppressWarnings("CatchingUnchecked") // an event that is lost is better than an allocation
    public <T> void tell(Events.Maker<T> maker, T about, int device, long first, long second, long third, long fourth) {
        try {
            Posted mine = posted.get();
            if (!mine.telling) {
                mine.telling = true;
                try {
                    tellPosted(mine);
                    toAll(maker.make(about, device, first, second, third, fourth));
                } finally {
                    mine.telling = false;
                }
            }
        } catch (RuntimeException | Error failure) {
            lose(failure);
        }
    }

    /// Tells the observers of an event without numbers.
    public <T> void tell(Events.Maker<T> maker, T about) {
        tell(maker, about, -1, 0, 0, 0, 0);
    }

    /// Keeps an event to be told later, if anybody observes. May be called under any lock.
    @SuppressWarnings("CatchingUnchecked") // as above
    public <T> void post(Events.Maker<T> maker, T about, int device, long first, long second, long third) {
        if (!any()) {
            return;
        }
        try {
            Posted mine = posted.get();
            MemoryEvent event = mine.telling ? null : maker.make(about, device, first, second, third, 0);
            if (event != null) {
                mine.add(new Link(event));
                waiting.incrementAndGet();
            }
        } catch (RuntimeException | Error failure) {
            lose(failure);
        }
    }

    /// Tells the observers of the events that the thread posted. To be called under no lock of an allocator.
    public void deliver() {
        if (waiting.get() != 0) {
            tell(Events.NOTHING_MORE, "");
        }
    }

    private void tellPosted(Posted mine) {
        for (MemoryEvent event = mine.poll(); event != null; event = mine.poll()) {
            waiting.decrementAndGet();
            toAll(event);
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
