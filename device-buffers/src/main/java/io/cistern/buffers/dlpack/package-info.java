/// Device buffers as tensors of other libraries in the process, such as PyTorch, CuPy and JAX, and theirs as
/// buffers, without a copy: [DLPack](https://dmlc.github.io/dlpack/latest/) 1.0, and the form before it.
package io.cistern.buffers.dlpack;
