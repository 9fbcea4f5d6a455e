package io.cistern;

import java.util.Collection;
import java.util.concurrent.atomic.AtomicBoolean;

/// The registration of a listener. Closing it removes the listener; a call in progress may continue.
/// Closing twice does nothing.
///
/// **Threads.** Any thread may close it at any time.
@FunctionalInterface
public interface Registration extends AutoCloseable {
    /// Adds a listener to a collection. Closing the returned registration removes the listener once, even
    /// if it was added twice.
    ///
    /// @param listeners a thread-safe collection
    static <T> Registration in(Collection<T> listeners, T listener) {
        AtomicBoolean closed = new AtomicBoolean();
        listeners.add(listener);
        return () -> {
            if (!closed.getAndSet(true)) {
                listeners.remove(listener);
            }
        };
    }

    /// Removes the listener.
    @Override
    void close();
}
