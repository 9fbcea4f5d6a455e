package io.cistern.pressure;

/// Where the bytes of a [SpillableBuffer] are.
public enum SpillPlace {
    /// On its device.
    DEVICE,

    /// In pinned memory of the host.
    HOST,

    /// In a file.
    FILE,

    /// Nowhere: it is closed.
    CLOSED
}
