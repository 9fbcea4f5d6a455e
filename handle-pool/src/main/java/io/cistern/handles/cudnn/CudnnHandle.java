package io.cistern.handles.cudnn;

/// A handle of cuDNN: see [Cudnn#pool].
///
/// **Threads.** The one that [io.cistern.handles.HandlePool#handle] gave it to.
///
/// @param value the `cudnnHandle_t`; the pool destroys it
/// @param device the ordinal of the device that it belongs to
public record CudnnHandle(long value, int device) {}
