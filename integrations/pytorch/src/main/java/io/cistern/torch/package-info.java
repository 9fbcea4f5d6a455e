/// The functions that `libcistern_torch.so` calls in the JVM that it starts in a Python process.
///
/// ```
/// PyTorch ─ hooks ─→ libcistern_torch.so ─ four function pointers ─→ TorchFunctions ─→ DeviceMemory
///                     finds and starts a JVM ─ JNI, once ─→ TorchHost
/// ```
@org.jspecify.annotations.NullMarked
package io.cistern.torch;
