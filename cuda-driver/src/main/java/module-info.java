/// The CUDA driver API for the JVM: typed, checked facets that the real driver (through the Foreign Function
/// and Memory API) and the simulated GPU both implement.
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // the modules that packages are exported to are built after this one
module io.cistern.cuda {
    requires static org.jspecify;

    exports io.cistern.cuda;
    exports io.cistern.cuda.host to
            io.cistern.buffers;
    exports io.cistern.cuda.kernels;
    exports io.cistern.cuda.library to
            io.cistern.buffers,
            io.cistern.cli,
            io.cistern.loader,
            io.cistern.nccl,
            io.cistern.observability,
            io.cistern.onnxruntime;
    exports io.cistern.cuda.nvrtc;
    exports io.cistern.cuda.process to
            io.cistern.api,
            io.cistern.async,
            io.cistern.caching,
            io.cistern.cli,
            io.cistern.loader,
            io.cistern.pressure,
            io.cistern.simulated,
            io.cistern.testkit;
    exports io.cistern.cuda.settings to
            io.cistern.adaptors,
            io.cistern.api,
            io.cistern.async,
            io.cistern.buffers,
            io.cistern.caching,
            io.cistern.cli,
            io.cistern.hazards,
            io.cistern.loader,
            io.cistern.nccl,
            io.cistern.observability,
            io.cistern.onnxruntime,
            io.cistern.pressure,
            io.cistern.simulated,
            io.cistern.spring,
            io.cistern.torch;

    uses io.cistern.cuda.CudaDriverProvider;

    provides io.cistern.cuda.CudaDriverProvider with
            io.cistern.cuda.ffm.NativeDriverProvider;
}
