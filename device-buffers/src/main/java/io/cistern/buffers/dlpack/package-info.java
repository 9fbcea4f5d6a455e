/// Shares device buffers as tensors with other libraries in the process, such as PyTorch, CuPy and JAX, and
/// takes their tensors as buffers, without a copy: [DLPack](https://dmlc.github.io/dlpack/latest/) 1.0, and the
/// form before it.
package io.cistern.buffers.dlpack;
