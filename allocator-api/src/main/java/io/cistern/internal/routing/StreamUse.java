package io.cistern.internal.routing;

/// One stream that uses blocks of others, from the first use that was recorded to its end. What its handle names
/// after that is another one of these: so nothing that was recorded for a stream is taken for its successor.
///
/// **Threads.** Guarded by the [BlockUses] that it belongs to.
final class StreamUse {
    /// A stream that exists.
    ///
    /// @param thread whose stream it is, for the per-thread default stream; else 0
    record Name(int device, long stream, long thread) {}

    final Name name;

    /// Blocks that are alive and used on it.
    int blocks;

    /// Whether the stream has ended; then `fence` stands behind its last work.
    boolean ended;

    long fence;

    StreamUse(Name name) {
        this.name = name;
    }
}
