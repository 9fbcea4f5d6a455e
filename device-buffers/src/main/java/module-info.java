/// Device memory as objects: buffers, arenas, pinned host memory, copies and kernels ([io.cistern.buffers]), and
/// buffers as tensors of other libraries in the process ([io.cistern.buffers.dlpack]).
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // the modules that a package is exported to are compiled after this one
module io.cistern.buffers {
    requires static org.jspecify;
    requires transitive io.cistern.api;

    exports io.cistern.buffers;
    exports io.cistern.buffers.dlpack;
    exports io.cistern.buffers.internal to
            io.cistern.javacpp,
            io.cistern.jcuda;
}
