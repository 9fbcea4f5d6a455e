package io.cistern.cli.refusals;

import java.util.List;

/// One step of a [Traffic]. Blocks, buffers and graphs are named by slots. A step whose slot is empty does nothing, so
/// any step can be left out of a program.
sealed interface Step {
    /// Where a request goes.
    enum Route {
        /// The current allocator.
        CURRENT,
        /// The pool that [OpenPool] opened, if there is one.
        POOL,
        /// The current allocator in a scope with the limit of [LimitScopes], if there is one.
        LIMITED
    }

    /// Allocates a block.
    ///
    /// @param elsewhere whether a second thread asks
    record Allocate(int slot, long byteSize, int stream, Route route, boolean elsewhere) implements Step {}

    /// Allocates many blocks of one size, and frees all but every `kept`-th.
    record Sprinkle(int slot, int count, long byteSize, int stream, int kept, boolean elsewhere) implements Step {}

    /// Frees the blocks of a slot.
    ///
    /// @param stream the stream of the last use
    record Free(int slot, int stream, boolean elsewhere) implements Step {}

    /// Says that a stream uses a block.
    record Use(int slot, int stream) implements Step {}

    /// Keeps a stream busy.
    record Work(int stream, long micros) implements Step {}

    /// Waits for a stream.
    record Synchronize(int stream) implements Step {}

    /// Gives idle memory back.
    record Trim(long keptBytes, boolean waits) implements Step {}

    /// Ends a stream; a new one takes its place.
    record EndStream(int stream) implements Step {}

    /// Opens the pool, once the one before is closed.
    record OpenPool(String spec, long limitBytes, long initialBytes, boolean lends) implements Step {}

    /// Closes the pool. Its blocks live on.
    record ClosePool() implements Step {}

    /// Sets the limit of [Route#LIMITED].
    record LimitScopes(long byteSize) implements Step {}

    /// Allocates a buffer that may be spilled.
    record Spillable(int slot, long byteSize, int stream, int priority) implements Step {}

    /// Uses a spillable buffer, for a moment or until it is closed.
    record Acquire(int slot, int stream, boolean keeps) implements Step {}

    /// Closes a spillable buffer.
    record CloseSpillable(int slot) implements Step {}

    /// Captures a graph that allocates blocks and frees all but the last `kept` of them, and launches it.
    record Graph(int slot, int stream, List<Long> byteSizes, int kept, boolean launches) implements Step {}

    /// Frees the blocks that a graph left, and closes it.
    ///
    /// @param waits whether the driver has told of its end when the next step begins
    record CloseGraph(int slot, boolean waits) implements Step {}

    /// Begins a capture that goes on while other steps run.
    record BeginCapture(int stream) implements Step {}

    /// Abandons that capture.
    record EndCapture() implements Step {}
}
