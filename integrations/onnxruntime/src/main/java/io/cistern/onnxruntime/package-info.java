/// Provides device memory to the CUDA sessions of ONNX Runtime.
///
/// ```
/// OnnxMemory ── register ─▶ OrtEnvironment            one allocator for all sessions of a device
///    │  configure(options) ─▶ SessionMemory           a stream, a limit and figures for each session
///    ▼
/// AllocatorTable   the C structure that ONNX Runtime calls      OnnxApi   the C functions in use
///    ▼
/// SessionBlocks    the stream, and so the order, of each block ─▶ DeviceMemory
/// ```
package io.cistern.onnxruntime;
