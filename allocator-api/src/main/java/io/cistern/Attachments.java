package io.cistern;

import io.cistern.internal.names.Failures;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Keeps objects of other modules with one device memory, at most one of each type. They are closed with it,
/// the newest first.
///
/// **Threads.** Any.
final class Attachments {
    private record Attached(Class<?> type, Object object) {}

    /// Newest first. Written under its lock, read without it, since copies and pinned memory look objects
    /// up here.
    private final CopyOnWriteArrayList<Attached> attached = new CopyOnWriteArrayList<>();

    /// Guarded by the lock of the list.
    private boolean closed;

    /// Returns the object of a type, which the first call opens. An object opened after [#close] is closed at
    /// once.
    <T> T get(Class<T> type, Supplier<? extends T> opening) {
        T there = find(attached, type);
        if (there != null) {
            return there;
        }
        synchronized (attached) {
            there = find(attached, type);
            if (there != null) {
                return there;
            }
            T opened = opening.get();
            attached.addFirst(new Attached(type, opened));
            if (closed && opened instanceof AutoCloseable closeable) {
                close(closeable);
            }
            return opened;
        }
    }

    private static <T> @Nullable T find(Iterable<Attached> attached, Class<T> type) {
        for (Attached each : attached) {
            if (each.type == type) {
                return type.cast(each.object);
            }
        }
        return null;
    }

    /// Returns the newest object that is an instance of a type.
    <T> Optional<T> find(Class<T> ability) {
        for (Attached each : attached) {
            if (ability.isInstance(each.object)) {
                return Optional.of(ability.cast(each.object));
            }
        }
        return Optional.empty();
    }

    /// Closes all objects and keeps them, since later frees still use them.
    void close(Failures failures) {
        synchronized (attached) {
            closed = true;
        }
        for (Attached each : attached) {
            if (each.object instanceof AutoCloseable closeable) {
                failures.gather(() -> close(closeable));
            }
        }
    }

    private static void close(AutoCloseable attached) {
        try {
            attached.close();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
