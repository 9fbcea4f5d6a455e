package io.cistern.pressure;

/// The state of a [SpillStore] for one device.
///
/// @param order the buffers that may leave the device
/// @param stream the stream on which they leave
record SpillDevice(SpillOrder order, long stream) {}
