package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;

/// Asks a callback when memory is short, and tries again for as long as it says so. Other failures are not retried.
public final class RetryAllocator extends AllocatorAdaptor {
    private final FailureCallback callback;

    /// Sets who is asked.
    public RetryAllocator(DeviceAllocator upstream, FailureCallback callback) {
        super(upstream);
        this.callback = callback;
    }

    /// @throws DeviceOutOfMemoryException the last attempt's, when the callback gave up; what the callback throws
    ///     goes to the caller too, with that failure suppressed in it
    @Override
    public long allocate(long byteSize, int device, long stream) {
        for (int attempt = 1; ; attempt++) {
            try {
                return upstream().allocate(byteSize, device, stream);
            } catch (DeviceOutOfMemoryException failure) {
                if (!madeRoom(failure, attempt)) {
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
