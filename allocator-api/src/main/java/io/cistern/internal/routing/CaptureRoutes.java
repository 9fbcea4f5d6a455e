package io.cistern.internal.routing;

import org.jspecify.annotations.Nullable;

/// Decides about allocations and frees while streams are captured into graphs, and about the frees of
/// blocks that [belong to graphs][Router#markOfGraph]. During a capture, the routes of its device refuse
/// allocations and pass frees to this object, so ordinary calls need no check for captures.
///
/// A [kept][Router#keep] block stays counted and charged to its limits, until it is returned to its
/// allocator.
public interface CaptureRoutes {
    /// The effect of a free on a captured stream.
    enum CapturedFree {
        /// The block is kept.
        KEPT,

        /// The graph's own allocator takes it on that stream.
        OWN,

        /// The stream is not captured any more.
        NOT_CAPTURED
    }

    /// Serves a request that a suspended route refused.
    long allocate(Route route, long byteSize, long stream);

    /// Called for a new route, before it is used.
    void opened(Route route);

    /// Returns whether a stream is captured now; true also if the driver doesn't report it.
    boolean isCaptured(int device, long stream);

    /// Keeps a block that is being freed, if a graph may use it.
    ///
    /// @return false if its allocator receives it now; then no graph decides about it any more
    /// @throws io.cistern.errors.UnusableStreamException if the stream is in a capture that was not announced; then
    ///     the block is [kept][#keep]
    boolean keeps(Route route, long address, long stream);

    /// Notes that a further stream uses a block that is being freed. If it is captured, its graph keeps the
    /// block once the others release it.
    ///
    /// @throws io.cistern.errors.UnusableStreamException if it is in a capture that was not announced
    void usedToo(Route route, long address, long stream);

    /// Keeps a block that is being freed and that a stream uses, if that stream is captured into other memory.
    ///
    /// @throws io.cistern.errors.UnusableStreamException as [#keeps]
    CapturedFree freeCaptured(Route route, long address, long stream);

    /// Keeps a block that is being freed until it can be returned after all work of the context: with the
    /// graph of a capture on its device, or until no capture is under way.
    void keep(Route route, long address);

    /// Returns the name of what keeps a block; null if nothing does.
    @Nullable
    String keeper(long address);
}
