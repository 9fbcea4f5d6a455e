package io.cistern.spi;

import java.util.Optional;

/// A source of memory for allocators: of plain ranges, or of physical handles that can be mapped page by page.
///
/// **Threads.** Any thread may call any method at any time.
///
/// **Tests.** `cistern-allocator-testkit` has `SegmentSourceConformance`, a suite that every source must pass. A
/// subclass with one method runs it on a simulated GPU.
public sealed interface SegmentSource extends AutoCloseable permits RangeSource, PageSource {
    /// Returns an optional ability of this source's memory, such as one that lets communicators register
    /// the memory. An allocator on top passes the ability on ([DeviceAllocator#extension]).
    ///
    /// @return empty if this source lacks it
    default <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
    }

    /// Closes the source. Called once, after all of its memory was released.
    @Override
    default void close() {}
}
