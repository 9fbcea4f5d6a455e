/// Multiplies matrices in [device buffers][io.cistern.buffers.DeviceBuffer] from any thread, with cuBLAS and
/// cuBLASLt over pools of their handles.
package io.cistern.handles.cublas;
