package io.cistern.pressure;

/// The place of a [SpillableBuffer]'s bytes.
public enum SpillPlace {
    /// On its device.
    DEVICE,

    /// In pinned memory of the host.
    HOST,

    /// In a file.
    FILE,

    /// Nowhere: the buffer is closed.
    CLOSED
}
