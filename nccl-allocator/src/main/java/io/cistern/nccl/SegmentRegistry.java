package io.cistern.nccl;

import io.cistern.spi.Segment;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// The segments of one source, and the communicators that know them.
///
/// **Rules.** What appears is registered with every communicator of its device; what goes is deregistered before. A
/// communicator that is in a call is not waited for, since that call may itself wait for whoever allocates here: what
/// appears meanwhile is registered before its next call, and what should go stays ([#letGo]). Nothing here is
/// collective.
///
/// **Invariant.** A segment that a communicator has a handle of is present or abandoned; one with a window too.
///
/// **Threading.** One lock. Under it the locks of communicators are only tried; whoever holds one of those may wait
/// for this lock.
final class SegmentRegistry {
    private final ReentrantLock lock = new ReentrantLock();
    private final Map<Long, Segment> present = new TreeMap<>();
    /// Windows on a segment, by its address.
    private final Map<Long, AtomicInteger> windows = new HashMap<>();
    /// Segments that nobody allocates from any more, and how they are freed once no communicator knows them.
    private final Map<Segment, Abandoned> abandoned = new HashMap<>();

    private final CopyOnWriteArrayList<RegistrationBook> books = new CopyOnWriteArrayList<>();

    /// Grows with each change, so that a communicator sees at a glance whether it is up to date.
    private final AtomicLong version = new AtomicLong();

    private static final class Abandoned {
        final Segment segment;
        final Runnable free;

        /// Whether a thread is freeing it.
        boolean isTaken;

        Abandoned(Segment segment, Runnable free) {
            this.segment = segment;
            this.free = free;
        }
    }

    long version() {
        return version.get();
    }

    /// A segment exists from now on.
    void appeared(Segment segment) {
        lock.lock();
        try {
            present.put(segment.address(), segment);
            version.incrementAndGet();
        } finally {
            lock.unlock();
        }
        books.forEach(RegistrationBook::tryUpdate);
    }

    /// Has a segment deregistered everywhere.
    ///
    /// @return false if a window lies on it, or if one of its communicators is in a call: then it must stay
    boolean letGo(Segment segment) {
        lock.lock();
        try {
            if (hasWindows(segment)) {
                return false;
            }
            version.incrementAndGet(); // also if it stays: who dropped it takes it up again
            for (RegistrationBook book : books) {
                if (!book.tryDrop(segment)) {
                    return false;
                }
            }
            windows.remove(segment.address());
            present.remove(segment.address());
            return true;
        } finally {
            lock.unlock();
        }
    }

    /// Nobody allocates from a segment any more: frees it now, or when no communicator knows it any more. After an
    /// OutOfMemoryError it can be abandoned again.
    void abandon(Segment segment, Runnable free) {
        if (!isAbandoned(segment) && letGo(segment)) {
            free.run();
            return;
        }
        lock.lock();
        try {
            present.remove(segment.address());
            abandoned.putIfAbsent(segment, new Abandoned(segment, free));
            version.incrementAndGet();
        } finally {
            lock.unlock();
        }
        books.forEach(RegistrationBook::tryUpdate);
        freeAbandoned();
    }

    private boolean isAbandoned(Segment segment) {
        lock.lock();
        try {
            return abandoned.containsKey(segment);
        } finally {
            lock.unlock();
        }
    }

    /// Frees what was abandoned and is known to nobody. What the Java heap had no memory for is tried once more: often
    /// nobody asks again.
    void freeAbandoned() {
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
                next.free.run();
                freed = true;
            } finally {
                ended(next, freed);
            }
        }
    }

    private @Nullable Abandoned takeUnknown() {
        lock.lock();
        try {
            for (Abandoned each : abandoned.values()) {
                if (!each.isTaken && !hasWindows(each.segment) && !isKnown(each.segment)) {
                    each.isTaken = true;
                    return each;
                }
            }
            return null;
        } finally {
            lock.unlock();
        }
    }

    private boolean isKnown(Segment segment) {
        for (RegistrationBook book : books) {
            if (book.knows(segment)) {
                return true;
            }
        }
        return false;
    }

    /// What could not be freed stays abandoned.
    private void ended(Abandoned taken, boolean freed) {
        lock.lock();
        try {
            taken.isTaken = false;
            if (freed) {
                abandoned.remove(taken.segment);
            }
        } finally {
            lock.unlock();
        }
    }

    /// The segments of a device, by address.
    List<Segment> present(int device) {
        lock.lock();
        try {
            return present.values().stream()
                    .filter(segment -> segment.device() == device)
                    .toList();
        } finally {
            lock.unlock();
        }
    }

    void add(RegistrationBook book) {
        books.add(book);
    }

    void remove(RegistrationBook book) {
        books.remove(book);
        freeAbandoned();
    }

    /// A window lies on a segment from now on.
    ///
    /// @return the count of its windows; closing a window lowers it, without memory of the Java heap
    AtomicInteger windowOpened(Segment segment) {
        lock.lock();
        try {
            AtomicInteger count = windows.computeIfAbsent(segment.address(), _ -> new AtomicInteger());
            count.incrementAndGet();
            return count;
        } finally {
            lock.unlock();
        }
    }

    /// A window has closed.
    void windowClosed() {
        freeAbandoned();
    }

    private boolean hasWindows(Segment segment) {
        AtomicInteger count = windows.get(segment.address());
        return count != null && count.get() > 0;
    }

    /// A source or an allocator whose memory can be registered.
    interface Owner {
        /// The registries of all memory that it hands out.
        List<SegmentRegistry> registries();
    }
}
