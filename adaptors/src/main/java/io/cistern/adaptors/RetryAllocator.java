package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;

/// Calls a callback when the upstream has no memory for a request, and retries while the callback returns
/// true. Other failures, and requests larger than a limit, are not retried.
public final class RetryAllocator extends AllocatorAdaptor {
    private final FailureCallback callback;

    /// Wraps an allocator, with a callback that the adaptor calls when memory is short.
    public RetryAllocator(DeviceAllocator upstream, FailureCallback callback) {
        super(upstream);
        this.callback = callback;
    }

    /// If the callback throws, the caller gets that exception, with the allocation's failure suppressed
    /// in it.
    ///
    /// @throws DeviceOutOfMemoryException the failure of the last attempt, if the callback returned
    ///     false; or the first failure, if the request can never fit
    @Override
    public long allocate(long byteSize, int device, long stream) {
        for (int attempt = 1; ; attempt++) {
            try {
                return upstream().allocate(byteSize, device, stream);
            } catch (DeviceOutOfMemoryException failure) {
                if (failure.canNeverFit() || !madeRoom(failure, attempt)) {
                    throw failure;
                }
            }
        }
    }

    private boolean madeRoom(DeviceOutOfMemoryException failure, int attempt) {
        try {
            return callback.makeRoom(failure, attempt);
        } catch (Throwable second) {
            second.addSuppressed(failure);
            throw second;
        }
    }
}
