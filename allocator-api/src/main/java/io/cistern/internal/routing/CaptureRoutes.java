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
}
