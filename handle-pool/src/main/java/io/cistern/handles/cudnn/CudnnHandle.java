package io.cistern.handles.cudnn;

/// A handle of cuDNN: see [Cudnn#pool].
///
/// **Threads.** Only the thread that got it from [io.cistern.handles.HandlePool#handle].
///
/// @param value the `cudnnHandle_t`; the pool destroys it
/// @param device the ordinal of the device that it belongs to
public record CudnnHandle(long value, int device) {}
