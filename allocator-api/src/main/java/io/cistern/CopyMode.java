package io.cistern;

/// When a copy between host and device returns.
///
/// | host memory | [#BLOCKING] | [#NON_BLOCKING] |
/// |---|---|---|
/// | [PinnedBuffer] | when the bytes have arrived | at once; the buffer may be closed at once, and read once the stream has passed |
/// | native memory that is pinned otherwise | the same | at once; the memory has to stay, and stay as it is, until the stream has passed |
/// | native memory that is not pinned | the same | to the device: when the driver has taken the bytes, which waits for the stream where they are many; to the host: when they have arrived |
/// | an array | the same | to the device: when the bytes have been taken, through pinned memory; to the host: refused |
///
/// Only pinned memory is copied beside other work: see [DeviceMemoryBuilder#reportPageableCopies].
public enum CopyMode {
    /// The host waits for the stream.
    BLOCKING,
    /// The host waits for no more than the table says.
    NON_BLOCKING
}
