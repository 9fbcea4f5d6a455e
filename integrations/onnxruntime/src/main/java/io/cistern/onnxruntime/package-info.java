/// Device memory for the CUDA sessions of ONNX Runtime.
///
/// ```
/// OnnxMemory ── register ─▶ OrtEnvironment            one allocator for all sessions of a device
///    │  configure(options) ─▶ SessionMemory           a stream, a limit and figures for each session
///    ▼
/// AllocatorTable   the C structure that ONNX Runtime calls      OnnxApi   the C functions that are called
///    ▼
/// SessionBlocks    which stream, and so which order, a block has ─▶ DeviceMemory
/// ```
package io.cistern.onnxruntime;
