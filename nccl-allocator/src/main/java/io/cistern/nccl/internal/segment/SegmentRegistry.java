package io.cistern.nccl.internal.segment;

import io.cistern.internal.threads.HeldLock;
import io.cistern.spi.Segment;
import java.lang.System.Logger.Level;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Records the segments of one source and the communicators that have them registered.
///
/// **Rules.** A new segment is registered with every communicator of its device; a segment is deregistered
/// before it is freed. If a communicator is in a call, nobody waits for it, since that call may itself wait
/// for the thread that allocates here. A segment that appears meanwhile is registered before the
/// communicator's next call; one that should be freed stays ([#letGo]). Nothing here is collective.
///
/// **Invariant.** A segment for which a communicator has a handle, or on which a window lies, is present or
/// abandoned.
///
/// **Threads.** One lock. Under it the locks of communicators are only tried, so a thread that holds one of
/// those may wait for this lock.
public final class SegmentRegistry {
    private static final System.Logger LOG = System.getLogger(SegmentRegistry.class.getName());

    private final HeldLock lock = new HeldLock();
    private final Map<Long, Segment> present = new TreeMap<>();
    /// The count of windows on each segment, by the segment's address.
    private final Map<Long, AtomicInteger> windows = new HashMap<>();
    /// Segments that nobody allocates from any more, with the action that frees each once no communicator has it
    /// registered.
    private final Map<Segment, Abandoned> abandoned = new HashMap<>();

    private final CopyOnWriteArrayList<Registrant> registrants = new CopyOnWriteArrayList<>();

    private volatile boolean closed;

    /// Grows with each change, so that a communicator can check with one read whether it is up to
    /// date.
    private final AtomicLong version = new AtomicLong();

    private static final class Abandoned {
        final Segment segment;
        final Consumer<Segment> free;

        /// Whether a thread is freeing it now.
        boolean isTaken;

        Abandoned(Segment segment, Consumer<Segment> free) {
            this.segment = segment;
            this.free = free;
        }
    }

    public long version() {
        return version.get();
    }

    /// Adds a new segment.
    public void appeared(Segment segment) {
        try (HeldLock _ = lock.held()) {
            present.put(segment.address(), segment);
            version.incrementAndGet();
        }
        registrants.forEach(Registrant::tryUpdate);
    }

    /// Deregisters a segment everywhere.
    ///
    /// @return false if a window lies on it or one of its communicators is in a call; then the segment must
    ///     stay
    public boolean letGo(Segment segment) {
        try (HeldLock _ = lock.held()) {
            if (hasWindows(segment)) {
                return false;
            }
            version.incrementAndGet(); // also if it stays: a communicator that dropped it registers it again
            for (Registrant each : registrants) {
                if (!each.tryDrop(segment)) {
                    return false;
                }
            }
            windows.remove(segment.address());
            present.remove(segment.address());
            return true;
        }
    }

    /// Frees the segments of a source that is closed, each now or once no communicator has it registered, and lets
    /// communicators forget their registrations of it. If the Java heap was full, it tries once more: no later call
    /// closes the source.
    ///
    /// @param free frees a segment; if it fails, the segment stays reserved
    public void abandonAll(Set<Segment> segments, Consumer<Segment> free) {
        try {
            abandonEach(segments, free);
        } catch (OutOfMemoryError full) {
            abandonEach(segments, free);
            throw full;
        }
    }

    private void abandonEach(Set<Segment> segments, Consumer<Segment> free) {
        segments.forEach(segment -> abandon(segment, free));
        closed = true;
        version.incrementAndGet();
        registrants.forEach(Registrant::tryUpdate);
    }

    /// Returns whether the source is closed: no segment will be present any more.
    public boolean isClosed() {
        return closed;
    }

    private void abandon(Segment segment, Consumer<Segment> free) {
        if (!isAbandoned(segment) && letGo(segment)) {
            freeLate(segment, free);
            return;
        }
        try (HeldLock _ = lock.held()) {
            present.remove(segment.address());
            abandoned.putIfAbsent(segment, new Abandoned(segment, free));
            version.incrementAndGet();
        }
        registrants.forEach(Registrant::tryUpdate);
        freeAbandoned();
    }

    private boolean isAbandoned(Segment segment) {
        try (HeldLock _ = lock.held()) {
            return abandoned.containsKey(segment);
        }
    }

    /// Frees abandoned segments that no communicator has registered. If the Java heap was full, it tries once
    /// more, since often no later call does.
    public void freeAbandoned() {
        try {
            freeUnknown();
        } catch (OutOfMemoryError full) {
            freeUnknown();
            throw full;
        }
    }

    private void freeUnknown() {
        for (Abandoned next = takeUnknown(); next != null; next = takeUnknown()) {
            boolean freed = false;
            try {
                freeLate(next.segment, next.free);
                freed = true;
            } finally {
                ended(next, freed);
            }
        }
    }

    private static void freeLate(Segment segment, Consumer<Segment> free) {
        try {
            free.accept(segment);
        } catch (RuntimeException failure) {
            stays(segment, failure);
        }
    }

    /// Logs that a segment could not be freed.
    public static void stays(Segment segment, RuntimeException failure) {
        try {
            LOG.log(Level.WARNING, segment + " stays reserved: " + failure.getMessage());
        } catch (OutOfMemoryError ofTheHeap) {
            // The next refusal is logged.
        }
    }

    private @Nullable Abandoned takeUnknown() {
        try (HeldLock _ = lock.held()) {
            for (Abandoned each : abandoned.values()) {
                if (!each.isTaken && !hasWindows(each.segment) && !isKnown(each.segment)) {
                    each.isTaken = true;
                    return each;
                }
            }
            return null;
        }
    }

    private boolean isKnown(Segment segment) {
        for (Registrant each : registrants) {
            if (each.knows(segment)) {
                return true;
            }
        }
        return false;
    }

    /// Ends an attempt to free a segment; if it failed, the segment stays abandoned.
    private void ended(Abandoned taken, boolean freed) {
        try (HeldLock _ = lock.held()) {
            taken.isTaken = false;
            if (freed) {
                abandoned.remove(taken.segment);
            }
        }
    }

    /// Returns the segments of a device, by address.
    public List<Segment> present(int device) {
        try (HeldLock _ = lock.held()) {
            return present.values().stream()
                    .filter(segment -> segment.device() == device)
                    .toList();
        }
    }

    public void add(Registrant registrant) {
        registrants.add(registrant);
    }

    public void remove(Registrant registrant) {
        registrants.remove(registrant);
        freeAbandoned();
    }

    /// Counts a new window on a segment.
    ///
    /// @return the count of the segment's windows; closing a window lowers it, which needs no Java heap
    public AtomicInteger windowOpened(Segment segment) {
        try (HeldLock _ = lock.held()) {
            AtomicInteger count = windows.computeIfAbsent(segment.address(), _ -> new AtomicInteger());
            count.incrementAndGet();
            return count;
        }
    }

    /// Frees abandoned segments after a window has closed.
    public void windowClosed() {
        freeAbandoned();
    }

    private boolean hasWindows(Segment segment) {
        AtomicInteger count = windows.get(segment.address());
        return count != null && count.get() > 0;
    }

    /// A communicator that registers the segments.
    public interface Registrant {
        /// Registers new segments and deregisters abandoned ones, now or before the communicator's next call.
        void tryUpdate();

        /// Deregisters a segment.
        ///
        /// @return false if the communicator is in a call or ends
        boolean tryDrop(Segment segment);

        /// Returns whether it has the segment registered.
        boolean knows(Segment segment);
    }

    /// A source or an allocator whose memory can be registered.
    public interface Owner {
        /// Returns the registries of all memory that it hands out.
        List<SegmentRegistry> registries();
    }
}
