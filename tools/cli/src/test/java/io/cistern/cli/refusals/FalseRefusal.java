package io.cistern.cli.refusals;

/// A refusal that the [RefusalOracle] contradicts, or another fault of a [Traffic].
///
/// @param cause what contradicts it
/// @param detail the request, the refusal and the facts
public record FalseRefusal(Cause cause, String detail) {
    /// What could have served a refused request, or is untrue in its message.
    public enum Cause {
        /// Nothing was missing: the same request was served when asked again.
        SERVED_AGAIN,
        /// A free run of the request's own stream, as the allocator's segments show.
        RUN_OF_ITS_STREAM,
        /// A wait for the work of all streams.
        SERVED_AFTER_WAIT,
        /// The memory of closed graphs.
        SERVED_AFTER_COLLECT,
        /// Idle memory that goes back without a wait.
        SERVED_AFTER_TRIM,
        /// Idle memory that goes back after a wait.
        SERVED_AFTER_WAITING_TRIM,
        /// Live memory that moves, in a program that pauses.
        SERVED_AFTER_COMPACTION,
        /// Buffers that can be spilled.
        SERVED_AFTER_SPILL,
        /// Memory at the driver.
        DRIVER_HAS_ENOUGH,
        /// Pages that hold nothing alive, in a program that pauses.
        LIVE_PAGES_LEAVE_ROOM,
        /// A limit is blamed that has room.
        LIMIT_HAS_ROOM,
        /// A limit applies and is neither kept nor blamed.
        LIMIT_IGNORED,
        /// The report names free bytes that the driver does not.
        WRONG_FREE_BYTES,
        /// A limit on reserved bytes is at work, and the message does not name it.
        UNNAMED_CAP,
        /// A call failed with another error.
        OTHER_ERROR
    }
}
