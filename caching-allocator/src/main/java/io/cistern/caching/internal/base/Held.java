package io.cistern.caching.internal.base;

/// A lock that the calling thread holds until the end of a `try` statement.
@FunctionalInterface
public interface Held extends AutoCloseable {
    /// Releases the lock.
    @Override
    void close();
}
