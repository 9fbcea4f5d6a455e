/// Provides device memory to the CUDA sessions of ONNX Runtime: [io.cistern.onnxruntime.OnnxMemory].
@org.jspecify.annotations.NullMarked
// The library names its module only in its manifest.
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"})
module io.cistern.onnxruntime {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive com.microsoft.onnxruntime;

    exports io.cistern.onnxruntime;
}
