package io.cistern.async.sharing;

import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;

/// Holds the buffers that a pool has published and their uses, under one lock. The program publishes and
/// closes; the server's thread maps and releases for importers.
///
/// A buffer is *published*, then *withdrawn* (nobody else can map it), then forgotten, once nobody uses it.
final class Publications {
    /// The most buffers that one importer may map: more than programs need, fewer than would hurt the exporter.
    private static final int MAX_USES = 4096;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final Map<String, ExportedBuffer> published = new HashMap<>();
    private final Set<ExportedBuffer> withdrawn = new LinkedHashSet<>();

    private long lastUse;

    void locked(Runnable work) {
        locked(() -> {
            work.run();
            return true;
        });
    }

    <T> T locked(Supplier<T> work) {
        lock.lock();
        try {
            return work.get();
        } finally {
            lock.unlock();
        }
    }

    /// Publishes the buffer that a supplier makes, under a name that is free.
    ExportedBuffer publish(String name, Supplier<ExportedBuffer> factory) {
        return locked(() -> {
            if (published.containsKey(name)) {
                throw new IllegalArgumentException("\"" + name + "\" is already published; close that buffer first");
            }
            ExportedBuffer buffer = factory.get();
            published.put(name, buffer);
            return buffer;
        });
    }

    /// Maps a buffer for an importer.
    Message.Buffer map(Importer importer, Message.Map wanted) {
        return locked(() -> {
            ExportedBuffer buffer = published.get(wanted.name());
            if (buffer == null) {
                throw new SharingException(
                        Reason.UNKNOWN_NAME,
                        "nothing is published as \"" + wanted.name() + "\"; published: " + published.keySet());
            }
            if (wanted.byteSize() != 0 && wanted.byteSize() != buffer.byteSize()) {
                throw new SharingException(
                        Reason.WRONG_SIZE,
                        "\"" + wanted.name() + "\" has " + buffer.byteSize() + " bytes, not " + wanted.byteSize());
            }
            if (uses(importer) >= MAX_USES) {
                throw new SharingException(
                        Reason.IN_USE, importer + " has " + MAX_USES + " buffers mapped, the maximum");
            }
            return buffer.map(importer, ++lastUse, wanted.event());
        });
    }

    /// Ends a use that an importer has released.
    void release(Importer importer, long use) {
        locked(() -> {
            if (all().noneMatch(buffer -> buffer.release(importer, use))) {
                throw new SharingException(Reason.MALFORMED, "no use has the number " + use);
            }
            changed.signalAll();
        });
    }

    /// Ends all uses of an importer that is gone.
    void drop(Importer importer) {
        locked(() -> {
            all().forEach(buffer -> buffer.drop(importer));
            changed.signalAll();
        });
    }

    boolean isUsedBy(Importer importer) {
        return locked(() -> uses(importer) > 0);
    }

    private int uses(Importer importer) {
        return all().mapToInt(buffer -> buffer.uses(importer)).sum();
    }

    private Stream<ExportedBuffer> all() {
        return Stream.concat(published.values().stream(), withdrawn.stream());
    }

    /// Returns the ids of the processes that use a buffer.
    List<Long> importers() {
        return locked(() ->
                all().flatMap(ExportedBuffer::importers).distinct().sorted().toList());
    }

    /// Withdraws the name of a buffer. The caller holds the lock.
    void withdraw(ExportedBuffer buffer) {
        if (published.remove(buffer.name(), buffer)) {
            withdrawn.add(buffer);
        }
    }

    /// Forgets a buffer that nobody uses and that has ended. The caller holds the lock.
    void forget(ExportedBuffer buffer) {
        withdrawn.remove(buffer);
    }

    /// Withdraws all names and waits until no buffer is in use.
    ///
    /// @return false if the wait ended before that
    boolean withdrawAll(Duration patience) {
        return locked(() -> {
            List.copyOf(published.values()).forEach(this::withdraw);
            return awaitChange(() -> withdrawn.stream().noneMatch(ExportedBuffer::isUsed), patience);
        });
    }

    /// Ends the remaining buffers, even if they are in use.
    void endAll() {
        locked(() -> {
            new ArrayList<>(withdrawn).forEach(ExportedBuffer::end);
            withdrawn.clear();
        });
    }

    /// Waits for a condition that changes when importers release buffers or end. The caller holds the lock.
    ///
    /// @return whether the condition holds
    boolean awaitChange(BooleanSupplier condition, Duration patience) {
        long left = TimeUnit.NANOSECONDS.convert(patience);
        while (!condition.getAsBoolean()) {
            if (left <= 0) {
                return false;
            }
            try {
                left = changed.awaitNanos(left);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return condition.getAsBoolean();
            }
        }
        return true;
    }
}
