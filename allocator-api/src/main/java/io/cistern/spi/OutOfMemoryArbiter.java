package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.function.LongSupplier;

/// The optional ability of a [DeviceAllocator] to decide about a request that failed although all reclaim
/// steps were tried: the allocator waits for memory, frees some, or throws its own exception instead of the
/// refusal. An adaptor that decides here, rather than in [DeviceAllocator#allocate], acts only after all
/// the steps that the framework would take for the upstream alone.
///
/// **Threads.** Any thread may call the method at any time, for its own request.
public interface OutOfMemoryArbiter {
    /// Decides about a refused request. The framework calls this method on the thread that allocates, after
    /// the last [step][io.cistern.diagnostics.ReclaimStep] and under no lock. It does not call this method
    /// if a limit of the program refused the request, or for an allocation within a reclaim step, for
    /// example by a callback.
    ///
    /// @param refusal the last refusal
    /// @param attempt allocates once more, with all reclaim steps; returns the address, or throws a
    ///     [DeviceOutOfMemoryException]
    /// @return the address that `attempt` returned
    /// @throws DeviceOutOfMemoryException if the request fails; the caller gets this exception
    default long arbitrate(DeviceOutOfMemoryException refusal, LongSupplier attempt) {
        throw refusal;
    }
}
