package io.cistern.pressure;

/// What a [SpillStore] keeps for one device.
///
/// @param order the buffers that may leave the device
/// @param stream the stream on which they leave
record SpillDevice(SpillOrder order, long stream) {}
