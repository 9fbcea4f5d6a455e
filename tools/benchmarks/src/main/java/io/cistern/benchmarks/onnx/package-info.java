/// Measures and checks ONNX Runtime with the memory of its own arenas and pools, and with Cistern's.
package io.cistern.benchmarks.onnx;
