package io.cistern;

import io.cistern.internal.names.Failures;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.function.Supplier;

/// The objects that other modules keep for one device memory, at most one of each type. They are closed with it, the
/// last first.
///
/// **Threads.** Any.
final class Attachments {
    private record Attached(Class<?> type, Object object) {}

    /// The last first. Guarded by itself.
    private final Deque<Attached> attached = new ArrayDeque<>();

    <T> T get(Class<T> type, Supplier<? extends T> opening) {
        synchronized (attached) {
            for (Attached each : attached) {
                if (each.type == type) {
                    return type.cast(each.object);
                }
            }
            T opened = opening.get();
            attached.push(new Attached(type, opened));
            return opened;
        }
    }

    /// Returns the last one that has an ability.
    <T> Optional<T> find(Class<T> ability) {
        synchronized (attached) {
            return attached.stream()
                    .map(Attached::object)
                    .filter(ability::isInstance)
                    .map(ability::cast)
                    .findFirst();
        }
    }

    /// Closes all, and keeps them: what is freed later still goes to them.
    void close(Failures failures) {
        Deque<Attached> all;
        synchronized (attached) {
            all = new ArrayDeque<>(attached);
        }
        for (Attached each : all) {
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
