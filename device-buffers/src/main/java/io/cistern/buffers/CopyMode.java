package io.cistern.buffers;

/// Says when a copy between host and device returns.
///
/// | host memory | blocking | non-blocking |
/// |---|---|---|
/// | [PinnedBuffer] | once the bytes have arrived | at once; it may be closed at once |
/// | other pinned memory | the same | at once; keep it unchanged until the stream has passed the copy |
/// | memory not pinned, to the device | the same | once the driver has taken the bytes |
/// | memory not pinned, to the host | the same | once the bytes have arrived |
/// | an array, to the device | the same | once the bytes are in pinned memory |
/// | an array, to the host | the same | refused |
///
/// **In a capture** only non-blocking copies of native memory are possible. Each launch of the graph reads or writes
/// that memory, so keep it as long as the graph.
///
/// Only copies of pinned memory overlap other work: see [CopyOptions#reportPageableCopies].
public enum CopyMode {
    /// The host waits until the stream has passed the copy.
    BLOCKING,
    /// The host waits only as long as the table says.
    NON_BLOCKING
}
