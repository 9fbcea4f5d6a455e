package io.cistern.pressure;

import io.cistern.CudaStream;

/// The state of a [SpillStore] for one device.
///
/// @param order the buffers that may leave the device
/// @param own the stream on which they leave
/// @param stream its handle
record SpillDevice(SpillOrder order, CudaStream own, long stream) {
    SpillDevice(CudaStream own) {
        this(new SpillOrder(), own, own.handle());
    }
}
