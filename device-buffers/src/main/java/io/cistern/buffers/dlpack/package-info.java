/// Shares device buffers as tensors with other libraries in the process, such as PyTorch, CuPy and JAX, and
/// takes their tensors as buffers, without a copy: in the format of
/// [DLPack](https://dmlc.github.io/dlpack/latest/) 1.0, and in the one before that.
package io.cistern.buffers.dlpack;
