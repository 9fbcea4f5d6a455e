package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.diagnostics.LadderStep;

/// An optional ability of a [DeviceAllocator], found by its extension: for a request that it refused it gives back
/// what it holds idle, when the framework says that it is time, after callbacks and pools that lend. It needs to
/// know of that while it allocates: see [LadderChoice#reclaimsLater].
///
/// The framework trims allocators that can't do this, which gives back more than a request needs.
///
/// **Failures.** What a method throws counts as nothing given: the other steps are taken, and the caller finds it
/// among the suppressed ones of the [DeviceOutOfMemoryException], if it comes to that. Only a
/// [io.cistern.cuda.CudaException] of [#reclaim] after which the context is dead reaches the caller instead.
///
/// **Threads.** Any.
public interface Reclaims {
    /// Gives back idle memory to the driver, or makes it free for the stream, as far as a request needs it. Asked
    /// again, a few times, while it gave something and the request is refused still.
    ///
    /// @param step [LadderStep#TRIM], which waits for nothing, or [LadderStep#SYNCHRONIZE], which waits for work,
    ///     but not for that of captured streams
    /// @param refusal what this allocator said, with what the framework added and itself as the cause: how many
    ///     bytes, and on which device
    /// @param stream the stream that they were asked for
    /// @return bytes; 0 if there is nothing more
    long reclaim(LadderStep step, DeviceOutOfMemoryException refusal, long stream);

    /// Nothing helped, and the caller gets the error.
    ///
    /// @param refusal what this allocator said last
    default void failed(DeviceOutOfMemoryException refusal) {}
}
