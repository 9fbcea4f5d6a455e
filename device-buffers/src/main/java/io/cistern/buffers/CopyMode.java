package io.cistern.buffers;

/// Says when a call that copies between host and device returns.
///
/// | host memory | blocking | non-blocking |
/// |---|---|---|
/// | [PinnedBuffer] | once the bytes have arrived | immediately; the buffer may be closed right away |
/// | other pinned memory | the same | immediately; keep the memory, unchanged, until the copy completes |
/// | memory not pinned, to the device | the same | once the driver has read the bytes |
/// | memory not pinned, to the host | the same | once the bytes have arrived |
/// | an array, to the device | the same | once the bytes are in pinned memory |
/// | an array, to the host | the same | refused |
///
/// **In a capture** only non-blocking copies of native memory are possible. Each launch of the graph
/// reads or writes that memory, so keep it until the graph and its executables are destroyed. A
/// [PinnedBuffer] may be closed: its memory is not reused before that.
///
/// Only copies of pinned memory overlap other work. [CopyOptions#reportPageableCopies] reports non-blocking
/// copies of native memory that is not pinned.
public enum CopyMode {
    /// The host waits until the copy completes.
    BLOCKING,
    /// The host waits no longer than the table of [CopyMode] says.
    NON_BLOCKING
}
