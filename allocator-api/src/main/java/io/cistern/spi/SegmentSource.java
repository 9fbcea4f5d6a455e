package io.cistern.spi;

/// Where segments come from: plain ranges, or physical handles that can be mapped page by page.
///
/// **Threads.** Any thread may call any method at any time.
public sealed interface SegmentSource extends AutoCloseable permits RangeSource, PageSource {
    /// Ends the source. Called once, after everything was released.
    @Override
    default void close() {}
}
