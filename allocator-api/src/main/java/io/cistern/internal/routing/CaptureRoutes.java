package io.cistern.internal.routing;

/// Where allocations go while streams are captured into graphs. Routes of the captured devices refuse then, so that
/// the path of an ordinary allocation has nothing to ask at any other time.
public interface CaptureRoutes {
    /// Serves a request that a suspended route refused.
    long allocate(Route route, long byteSize, long stream);

    /// Hears of a new route, before it is used. Called under the lock of the routes.
    void opened(Route route);

    /// Whether a stream is captured now.
    boolean isCaptured(int device, long stream);

    /// Keeps a block that is being freed with a graph for which a stream of its device is captured, behind all work of
    /// the context when it goes.
    ///
    /// @return false if none is captured any more
    boolean keep(Route route, long address, long byteSize);
}
