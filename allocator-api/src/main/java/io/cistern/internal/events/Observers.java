package io.cistern.internal.events;

import io.cistern.diagnostics.MemoryEvent;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The observers of one device memory, and the events that wait to be told.
///
/// **Idea.** Nobody asks for events as a rule, so each place that has one asks [#any] first, and those of
/// blocks, which are far more than all others, [#anyOfBlocks]. Observers run under no lock of an allocator:
/// what is [posted][#post] under one is told when the thread has left the allocator ([#deliver]).
///
/// Nothing here throws. An observer that throws misses that event; the first failure is logged. What
/// an observer does to the same device memory is told to nobody.
///
/// **Threads.** Any; observers are called on the thread that did it.
public final class Observers {
    /// What the calling thread has to tell.
    private static final class Posted {
        final Deque<MemoryEvent> events = new ArrayDeque<>();
        boolean telling;
    }

    /// An observer. One that is added twice is two of these.
    private static final class Observer {
        final Consumer<? super MemoryEvent> told;

        /// Whether it is told of blocks too.
        final boolean ofBlocks;

        Observer(Consumer<? super MemoryEvent> told, boolean ofBlocks) {
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

    /// Posted events of all threads that were not told yet: mostly 0, and then a thread need not look for its
    /// own.
    private final AtomicInteger waiting = new AtomicInteger();

    private volatile boolean hasFailed;

    /// Whether anybody observes.
    public boolean any() {
        return any;
    }

    /// Whether anybody observes blocks that are allocated and freed.
    public boolean anyOfBlocks() {
        return anyOfBlocks;
    }

    /// Tells an observer of events from now on.
    ///
    /// @param ofBlocks whether of blocks that are allocated and freed, too
    /// @return removes it
    public Runnable add(Consumer<? super MemoryEvent> observer, boolean ofBlocks) {
        Observer added = new Observer(observer, ofBlocks);
        synchronized (this) {
            Observer[] more = Arrays.copyOf(all, all.length + 1);
            more[all.length] = added;
            replace(more);
        }
        return () -> remove(added);
    }

    private synchronized void remove(Observer observer) {
        replace(Arrays.stream(all).filter(each -> !each.equals(observer)).toArray(Observer[]::new));
    }

    private void replace(Observer[] observers) {
        all = observers;
        any = observers.length != 0;
        anyOfBlocks = Arrays.stream(observers).anyMatch(each -> each.ofBlocks);
    }

    /// Tells of an event, after those that the thread [posted][#post]. Under no lock of an allocator.
    @SuppressWarnings("CatchingUnchecked")
    public void tell(MemoryEvent event) {
        try {
            Posted mine = posted.get();
            if (!mine.telling) {
                tell(mine, event);
            }
        } catch (RuntimeException | Error lost) {
            failed(lost);
        }
    }

    private void tell(Posted mine, @Nullable MemoryEvent last) {
        mine.telling = true;
        try {
            for (MemoryEvent event = mine.events.poll(); event != null; event = mine.events.poll()) {
                waiting.decrementAndGet();
                toAll(event);
            }
            if (last != null) {
                toAll(last);
            }
        } finally {
            mine.telling = false;
        }
    }

    /// Tells of an event later. Under any lock.
    @SuppressWarnings("CatchingUnchecked") // an event that is lost is better than an allocation
    public void post(MemoryEvent event) {
        try {
            Posted mine = posted.get();
            if (!mine.telling) {
                mine.events.add(event);
                waiting.incrementAndGet();
            }
        } catch (RuntimeException | Error lost) {
            failed(lost);
        }
    }

    /// An event of a range of addresses.
    @FunctionalInterface
    public interface RangeEvent {
        MemoryEvent of(String allocator, int device, long address, long byteSize);
    }

    /// Tells of an event of a range later, if anybody observes. Under any lock, and in a full Java heap,
    /// where the event is lost.
    public void post(RangeEvent event, String allocator, int device, long address, long byteSize) {
        if (any()) {
            try {
                post(event.of(allocator, device, address, byteSize));
            } catch (OutOfMemoryError lost) {
                failed(lost);
            }
        }
    }

    /// Tells what the thread posted. Under no lock of an allocator.
    @SuppressWarnings("CatchingUnchecked")
    public void deliver() {
        if (waiting.get() == 0) {
            return;
        }
        try {
            Posted mine = posted.get();
            if (!mine.telling && !mine.events.isEmpty()) {
                tell(mine, null);
            }
        } catch (RuntimeException | Error lost) {
            failed(lost);
        }
    }

    @SuppressWarnings("CatchingUnchecked")
    private void toAll(MemoryEvent event) {
        boolean ofBlock = event instanceof MemoryEvent.Allocated || event instanceof MemoryEvent.Freed;
        for (Observer observer : all) {
            if (ofBlock && !observer.ofBlocks) {
                continue;
            }
            try {
                observer.told.accept(event);
            } catch (RuntimeException | Error broken) {
                failed(broken);
            }
        }
    }

    @SuppressWarnings("CatchingUnchecked")
    private void failed(Throwable failure) {
        if (hasFailed) {
            return;
        }
        hasFailed = true;
        try {
            System.getLogger(Observers.class.getName())
                    .log(Level.WARNING, "an observer of device memory failed; later failures are not logged", failure);
        } catch (RuntimeException | Error alsoBroken) {
            // A diagnostic must not fail what it is about.
        }
    }
}
