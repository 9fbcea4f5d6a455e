package io.cistern.nccl;

import io.cistern.nccl.internal.segment.SegmentRegistry;
import io.cistern.spi.Segment;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Records which segments of one registry a communicator has registered. Changed only under the communicator's
/// lock.
final class RegistrationBook implements SegmentRegistry.Registrant {
    private static final System.Logger LOG = System.getLogger(RegistrationBook.class.getName());

    private static final String UNUSED =
            "NCCL does not use registered memory here: NCCL_LOCAL_REGISTER=0, or peers copy through the host";

    private final Communicator communicator;
    private final SegmentRegistry registry;
    private final Map<Segment, Long> handles = new ConcurrentHashMap<>();
    /// The reasons for segments that NCCL refused; they are not tried again.
    private final Map<Segment, String> refused = new ConcurrentHashMap<>();

    private long seenVersion = -1;

    /// Whether present segments are being registered; none of them may be freed meanwhile. Set before the
    /// registry is asked for them, under whose lock [#tryDrop] reads it.
    private volatile boolean isRegistering;

    RegistrationBook(Communicator communicator, SegmentRegistry registry) {
        this.communicator = communicator;
        this.registry = registry;
    }

    SegmentRegistry registry() {
        return registry;
    }

    /// Registers all present segments, or none.
    ///
    /// @throws NcclException if NCCL refuses one; those before it are deregistered again
    void begin() {
        registry.add(this);
        seenVersion = registry.version();
        isRegistering = true;
        try {
            for (Segment segment : registry.present(communicator.device())) {
                register(segment);
            }
        } catch (RuntimeException | Error failure) {
            end(failure);
            throw failure;
        } finally {
            isRegistering = false;
        }
    }

    private void register(Segment segment) {
        long handle = communicator.api().register(communicator.handle(), segment.address(), segment.byteSize());
        if (handle == 0) {
            refused.put(segment, UNUSED);
            return;
        }
        boolean known = false;
        try {
            handles.put(segment, handle);
            known = true;
        } finally {
            if (!known) { // if the Java heap is full
                communicator.api().deregister(communicator.handle(), handle);
            }
        }
    }

    /// Registers new segments and deregisters abandoned ones. If the communicator is in a call, that happens
    /// before its next one.
    @Override
    public void tryUpdate() {
        if (communicator.tryEnter()) {
            try {
                communicator.update(this);
            } finally {
                communicator.leave();
            }
        }
    }

    /// Updates the registrations. The caller holds the communicator's lock. A segment that NCCL refuses is
    /// logged and used unregistered, which is slower.
    ///
    /// @return whether its source has closed, so that it is [over][#isOver]
    boolean update() {
        long version = registry.version();
        if (version == seenVersion || !communicator.isOpen()) {
            return false;
        }
        seenVersion = version;
        forget(new HashSet<>(registerPresent()));
        return isOver();
    }

    /// Returns whether nothing is registered, and nothing will be: the source is closed.
    boolean isOver() {
        return registry.isClosed() && handles.isEmpty();
    }

    private List<Segment> registerPresent() {
        isRegistering = true;
        try {
            List<Segment> present = registry.present(communicator.device());
            for (Segment segment : present) {
                if (!handles.containsKey(segment) && !refused.containsKey(segment)) {
                    registerLate(segment);
                }
            }
            return present;
        } finally {
            isRegistering = false;
        }
    }

    private void registerLate(Segment segment) {
        try {
            register(segment);
        } catch (NcclException failure) {
            refused.put(segment, String.valueOf(failure.getMessage()));
            LOG.log(Level.WARNING, "{0} stays unregistered: {1}", segment, failure.getMessage());
        }
    }

    private void forget(Set<Segment> present) {
        refused.keySet().retainAll(present);
        for (Segment segment : List.copyOf(handles.keySet())) {
            if (!present.contains(segment)) {
                drop(segment);
            }
        }
        registry.freeAbandoned();
    }

    /// Deregisters a segment. If the communicator is in a call, registers segments, or ends, this returns false,
    /// and the communicator's end drops it.
    @Override
    public boolean tryDrop(Segment segment) {
        refused.remove(segment);
        boolean isOfOthers = segment.device() != communicator.device();
        if (isOfOthers || (!isRegistering && !handles.containsKey(segment))) {
            return true;
        }
        if (!communicator.tryEnter()) {
            return false;
        }
        try {
            drop(segment);
            return true;
        } finally {
            communicator.leave();
        }
    }

    /// Deregisters a segment. If NCCL refuses, its handle is dropped as well: after a failure of the
    /// communicator all handles are gone.
    private void drop(Segment segment) {
        Long handle = handles.get(segment);
        if (handle == null) {
            return;
        }
        try {
            communicator.api().deregister(communicator.handle(), handle);
        } catch (NcclException failure) {
            LOG.log(Level.WARNING, "{0} could not be deregistered: {1}", segment, failure.getMessage());
        } finally {
            handles.remove(segment);
        }
    }

    /// Deregisters all segments. The caller holds the communicator's lock. If the Java heap was full, it tries
    /// once more, since often no later call does.
    void end(@Nullable Throwable failure) {
        try {
            dropAll();
        } catch (OutOfMemoryError full) {
            dropAll();
            throw full;
        } finally {
            refused.clear();
            close(failure);
        }
    }

    private void dropAll() {
        for (Segment segment : List.copyOf(handles.keySet())) {
            drop(segment);
        }
    }

    /// Forgets all segments, because an aborted communicator has no registrations any more.
    void die() {
        handles.clear();
        refused.clear();
        registry.remove(this);
    }

    private void close(@Nullable Throwable failure) {
        try {
            registry.remove(this);
        } catch (RuntimeException second) {
            if (failure == null) {
                throw second;
            }
            failure.addSuppressed(second);
        }
    }

    @Override
    public boolean knows(Segment segment) {
        return handles.containsKey(segment);
    }

    long byteSize() {
        return handles.keySet().stream().mapToLong(Segment::byteSize).sum();
    }

    int segments() {
        return handles.size();
    }

    List<String> refusals() {
        List<String> texts = new ArrayList<>();
        refused.forEach((segment, why) -> texts.add(segment + ": " + why));
        return texts;
    }
}
