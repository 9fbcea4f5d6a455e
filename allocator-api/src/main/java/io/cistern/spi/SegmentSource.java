package io.cistern.spi;

import java.util.Optional;

/// Where segments come from: plain ranges, or physical handles that can be mapped page by page.
///
/// **Threads.** Any thread may call any method at any time.
public sealed interface SegmentSource extends AutoCloseable permits RangeSource, PageSource {
    /// Returns an optional ability of the memory that comes from here, such as to be registered with communicators.
    /// An allocator on top passes it on ([DeviceAllocator#extension]).
    ///
    /// @return empty if this source has not got it
    default <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
    }

    /// Ends the source. Called once, after everything was released.
    @Override
    default void close() {}
}
