package io.cistern.internal.routing;

/// Where allocations go while streams are captured into graphs. Routes of the captured devices refuse then, so that
/// the path of an ordinary allocation has nothing to ask at any other time.
public interface CaptureRoutes {
    /// Serves a request that a suspended route refused.
    long allocate(Route route, long byteSize, long stream);

    /// Hears of a new route, before it is used. Called under the lock of the routes.
    void opened(Route route);

    /// Whether a stream is captured now; also true where the driver won't tell.
    boolean isCaptured(int device, long stream);

    /// Frees a block on a captured stream: keeps it with the graph, or gives it back to the graph's own memory.
    ///
    /// @return false if the stream is not captured any more
    /// @throws io.cistern.errors.UnusableStreamException if the capture was not announced: then it is [kept][#keep]
    boolean freeCaptured(Route route, long address, long byteSize, long stream);

    /// Keeps a block that is being freed until it can go behind all work of the context: with a graph for which a
    /// stream of its device is captured, or until no capture is under way.
    void keep(Route route, long address, long byteSize);
}
