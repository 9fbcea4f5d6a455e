package io.cistern.cli.refusals;

import io.cistern.Allocator;
import io.cistern.MemoryLimit;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A request that can be asked again.
///
/// @param what the request in words
/// @param byteSize the bytes requested
/// @param stream the stream's handle
/// @param limits those that it is charged to
/// @param allocator the allocator that serves it; null if it opens one
/// @param cap what the allocator takes from the driver
/// @param ask asks, and returns what takes the result back
public record Request(
        String what,
        long byteSize,
        long stream,
        List<MemoryLimit> limits,
        @Nullable Allocator allocator,
        Cap cap,
        Ask ask) {
    /// Asks once.
    @FunctionalInterface
    public interface Ask {
        /// Returns an action that gives the memory back.
        Runnable ask();
    }
}
