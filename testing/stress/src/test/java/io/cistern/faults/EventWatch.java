package io.cistern.faults;

import io.cistern.DeviceMemory;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.events.Observers;
import io.cistern.observability.MemoryHistory;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/// Observes a program, and knows what it should have heard: each block of the program, unless the event was lost and
/// counted.
final class EventWatch {
    /// The observer's own work fails too.
    private static final int SITE = FaultSites.add(EventWatch.class.getName() + ".hear", 0, "an observer");

    /// What makes and tells events. Adding and removing observers is none of it: that may fail.
    private static final Set<String> TELLING = Set.of("tell", "post", "deliver");

    /// Thousands of losses are as they must be. Kept, since a logger that nobody keeps forgets its level.
    private static final Logger LOGGER = Logger.getLogger(Observers.class.getName());

    static {
        LOGGER.setLevel(Level.OFF);
    }

    private final DeviceMemory memory;
    private final boolean ofBlocks;
    private long heard;
    private long allocated;
    private long freed;
    private long missed;

    /// What the program did since this began.
    private long allocations;

    private long frees;

    EventWatch(DeviceMemory memory, boolean ofBlocks) {
        this.memory = memory;
        this.ofBlocks = ofBlocks;
    }

    /// Begins to observe, until the end.
    void begin() {
        if (ofBlocks) {
            memory.listeners().onEvent(this::hear);
        } else {
            memory.listeners().onRareEvent(this::hear);
        }
    }

    private synchronized void hear(MemoryEvent event) {
        missed++;
        FaultSites.at(SITE);
        missed--;
        heard++;
        allocated += event instanceof MemoryEvent.Allocated ? 1 : 0;
        freed += event instanceof MemoryEvent.Freed ? 1 : 0;
    }

    synchronized void allocates() {
        allocations++;
    }

    synchronized void frees() {
        frees++;
    }

    synchronized long heard() {
        return heard;
    }

    /// Events that were not heard, or not kept in the history, as far as is counted.
    synchronized long losses() {
        MemoryHistory history = MemoryHistory.of(memory);
        boolean recorded = history.options().isPresent();
        return missed + (recorded ? history.lost() : memory.listeners().lostEvents());
    }

    /// Whether an error came up where events are made or told, so that it must not reach the program.
    static boolean isInTelling(@Nullable Throwable thrown) {
        return thrown != null
                && Arrays.stream(thrown.getStackTrace())
                        .anyMatch(frame -> frame.getClassName().equals("io.cistern.ObservedCalls")
                                || (frame.getClassName().equals(Observers.class.getName())
                                        && TELLING.contains(frame.getMethodName())));
    }

    /// What is wrong with the events that the calling thread has told of, and tells of from now on.
    ///
    /// @param mayBeLost how many losses there may be
    Set<String> faults(long mayBeLost) {
        Set<String> faults = new LinkedHashSet<>();
        long before = heard();
        memory.listeners().annotate("later");
        if (heard() == before) {
            faults.add("later events are not told");
        }
        synchronized (this) {
            long missing = Math.max(0, allocations - allocated) + Math.max(0, frees - freed);
            if (ofBlocks && missing > losses()) {
                faults.add("blocks are not told, and their loss is not counted");
            }
            if (!ofBlocks && allocated + freed > 0) {
                faults.add("blocks are told to an observer of rare events");
            }
        }
        if (losses() > mayBeLost) {
            faults.add("more events are lost than could not be told");
        }
        return faults;
    }
}
