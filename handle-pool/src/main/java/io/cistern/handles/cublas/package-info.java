/// Products of matrices on [device buffers][io.cistern.buffers.DeviceBuffer] from any thread: cuBLAS and cuBLASLt
/// over pools of their handles.
package io.cistern.handles.cublas;
