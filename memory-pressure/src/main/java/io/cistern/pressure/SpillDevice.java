package io.cistern.pressure;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.cuda.DeadContext;
import java.util.concurrent.atomic.AtomicBoolean;

/// The state of a [SpillStore] for one device.
///
/// @param order the buffers that may leave the device
/// @param isEnding whether its end has begun
/// @param own the stream on which they leave
/// @param stream its handle
record SpillDevice(SpillOrder order, AtomicBoolean isEnding, CudaStream own, long stream) {
    private SpillDevice(SpillOrder order, AtomicBoolean isEnding, CudaStream own) {
        this(order, isEnding, own, own.handle());
    }

    SpillDevice(DeviceMemory memory, int device) {
        this(new SpillOrder(), new AtomicBoolean(), CudaStream.open(memory, device));
    }

    /// Waits for the stream before its end. After an end that failed, it may be gone already.
    void await() {
        if (isEnding.compareAndSet(false, true)) {
            DeadContext.survive(own::synchronize);
        }
    }
}
