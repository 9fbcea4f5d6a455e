package io.cistern.internal.routing;

/// Receives allocations while streams are captured into graphs. Routes of the captured devices refuse then, so
/// the path of an ordinary allocation has nothing to check at any other time.
public interface CaptureRoutes {
    /// Serves a request that a suspended route refused.
    long allocate(Route route, long byteSize, long stream);

    /// Called for a new route, before it is used, and for one that sends its frees through other code.
    void opened(Route route);

    /// Returns whether a stream is captured now; true also if the driver doesn't report it.
    boolean isCaptured(int device, long stream);

    /// Frees a block on a captured stream: keeps it with the graph, or gives it back to the graph's own memory.
    ///
    /// @return false if the stream is not captured any more
    /// @throws io.cistern.errors.UnusableStreamException if the capture was not announced; then the block is
    ///     [kept][#keep]
    boolean freeCaptured(Route route, long address, long byteSize, long stream);

    /// Keeps a block that is being freed until it can go back after all work of the context: with the graph of
    /// a capture on its device, or until no capture is under way.
    void keep(Route route, long address, long byteSize);
}
