package io.cistern;

/// A registered listener. Closing it removes the listener; a call that has begun may go on. Closing twice
/// does nothing.
///
/// **Threads.** Any thread may close it at any time.
@FunctionalInterface
public interface Registration extends AutoCloseable {
    /// Removes the listener.
    @Override
    void close();
}
